"""Batch inference of a traced model over a Dask cluster."""
