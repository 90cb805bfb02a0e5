"""Colours as goals say them: before a noun, or alone as nouns; the screen's words are those of `tr`."""

from vlrl.envs.gui.emu.wording import add_sentences

ADJECTIVES = {
    "black": ("schwarze", "noir", "negro"),
    "grey": ("graue", "gris", "gris"),
    "brown": ("braune", "marron", "marrón"),
    "red": ("rote", "rouge", "rojo"),
    "orange": ("orangefarbene", "orange", "naranja"),
    "yellow": ("gelbe", "jaune", "amarillo"),
    "green": ("grüne", "vert", "verde"),
    "blue": ("blaue", "bleu", "azul"),
    "purple": ("lilafarbene", "violet", "morado"),
}
"""With a feminine or neuter noun and an article in German, with a masculine one in French and Spanish."""
NOUNS = {
    "black": ("Schwarz", "noire", "negro"),
    "grey": ("Grau", "grise", "gris"),
    "brown": ("Braun", "marron", "marrón"),
    "red": ("Rot", "rouge", "rojo"),
    "orange": ("Orange", "orange", "naranja"),
    "yellow": ("Gelb", "jaune", "amarillo"),
    "green": ("Grün", "verte", "verde"),
    "blue": ("Blau", "bleue", "azul"),
    "purple": ("Lila", "violette", "morado"),
}
"""After "in", "de couleur" and "de color", which go with every noun."""
for _words, _kind in ((ADJECTIVES, "adjective"), (NOUNS, "noun")):
    for _name, (_german, _french, _spanish) in _words.items():
        add_sentences(f"{_name}|{_kind}\nde: {_german}\nfr: {_french}\nes: {_spanish}")
