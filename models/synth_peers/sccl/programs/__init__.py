"""SCCL's question: is there a schedule of S steps and R rounds for C chunks? (Cai et al., PPoPP 2021.)"""
