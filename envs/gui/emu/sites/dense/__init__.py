"""What real pages have around their content: loading in parts, banners, pop-ups, advertisements, columns."""
