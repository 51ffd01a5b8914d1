"""The command line: ``onemodel-graph`` and ``python -m onemodel_graph``."""
