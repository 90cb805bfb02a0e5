"""A program for an interpreter that has verifiers 0.4, which may be another than vlrl's own.

It imports nothing of vlrl. vlrl runs main.py as a file; requests are lines of JSON on its standard input,
answers on its standard output.
"""
