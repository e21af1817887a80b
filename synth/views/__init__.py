"""What views of solutions share: steps to play through, pictures of what is in use, a table for a notebook."""
