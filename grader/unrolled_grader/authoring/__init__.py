"""From lessons to notebooks, wheels and the site."""
