"""What tasks are about: people, letters, tables, pages."""
