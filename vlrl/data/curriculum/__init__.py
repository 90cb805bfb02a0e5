"""Rows by their pass rate: what is known of each, what weight it has, and which one comes next."""
