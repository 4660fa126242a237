"""Graphs: reading edges, compressed sparse rows, and random walks."""
