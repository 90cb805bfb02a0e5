"""Environments on other machines: vlrl's own servers, OSWorld's, OSGym's and AndroidWorld's."""
