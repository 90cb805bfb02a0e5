"""Apps for one kind of document each: slides, photos, PDF files, programs."""
