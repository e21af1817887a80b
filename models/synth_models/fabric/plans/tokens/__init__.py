"""Plans of tokens that mixtures of experts send to several ranks: once to a box, and on from there."""
