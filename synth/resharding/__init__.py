"""Weights from one mesh of ranks to another: meshes, tensors, and the classes of bytes that have the same holders and
wanters. Knows no machine."""
