"""Cases, one module for each family of kernels; each has ``CASES``."""
