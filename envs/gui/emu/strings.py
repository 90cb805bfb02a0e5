"""The words of the toolkit and its apps in four languages."""

from __future__ import annotations

from contextvars import ContextVar

LANGUAGES = ("en", "de", "fr", "es")
SCREEN = "screen"
"""Stands for the language of the screen where the language of goals is said."""
_language: ContextVar[str] = ContextVar("language", default="en")
_goals: ContextVar[str] = ContextVar("goals", default=SCREEN)


def tr(english: str) -> str:
    """The word in the language of the desktop that is at work; English where the table lacks it.

    A word that means two things says which after a bar: tr("Open|adjective").
    """
    language = _language.get()
    if language == "en":
        return english.partition("|")[0]
    words = WORDS.get(english)
    if words is None:
        return english.partition("|")[0]
    return words[LANGUAGES.index(language) - 1]


def speak(language: str, goals: str = SCREEN) -> None:
    """Which language `tr` gives from now on, in this thread, and which one goals are in."""
    _language.set(language)
    _goals.set(goals)


def language_of_goals() -> str:
    """What `speak` said of goals."""
    goals = _goals.get()
    return _language.get() if goals == SCREEN else goals


WORDS: dict[str, tuple[str, str, str]] = {}
"""English → German, French, Spanish."""


def add_words(table: str) -> None:
    """Add a table of lines "English = German = French = Spanish"; apps keep theirs next to their code.

    Raises:
        ValueError: for a word that another table translates otherwise.
    """
    for line in table.strip().splitlines():
        english, *others = (word.strip() for word in line.split("="))
        german, french, spanish = others
        known = WORDS.setdefault(english, (german, french, spanish))
        if known != (german, french, spanish):
            raise ValueError(
                f"the word {english!r} is already {known}; say which is meant by a bar: {english}|kind = …"
            )


add_words("""
OK = OK = OK = Aceptar
Cancel = Abbrechen = Annuler = Cancelar
Yes = Ja = Oui = Sí
No = Nein = Non = No
Open = Öffnen = Ouvrir = Abrir
Save = Speichern = Enregistrer = Guardar
Save as… = Speichern unter… = Enregistrer sous… = Guardar como…
Open… = Öffnen… = Ouvrir… = Abrir…
New = Neu = Nouveau = Nuevo
Close = Schließen = Fermer = Cerrar
Quit = Beenden = Quitter = Salir
Delete = Löschen = Supprimer = Eliminar
Rename… = Umbenennen… = Renommer… = Renombrar…
Minimize = Minimieren = Réduire = Minimizar
Maximize = Maximieren = Agrandir = Maximizar
Restore = Wiederherstellen = Restaurer = Restaurar
File = Datei = Fichier = Archivo
Edit = Bearbeiten = Édition = Editar
View = Ansicht = Affichage = Ver
Undo = Rückgängig = Annuler l’action = Deshacer
Cut = Ausschneiden = Couper = Cortar
Copy = Kopieren = Copier = Copiar
Paste = Einfügen = Coller = Pegar
Select all = Alles auswählen = Tout sélectionner = Seleccionar todo
Find = Suchen = Rechercher = Buscar
Apps = Programme = Applications = Aplicaciones
Home = Startseite = Accueil = Inicio
Back = Zurück = Retour = Atrás
File name = Dateiname = Nom du fichier = Nombre del archivo
Folder = Ordner = Dossier = Carpeta
Up = Aufwärts = Remonter = Subir
Files = Dateien = Fichiers = Archivos
Name = Name = Nom = Nombre
Replace the file? = Datei ersetzen? = Remplacer le fichier ? = ¿Reemplazar el archivo?
""")
