"""Goals of the text editor and of Files."""

from vlrl.envs.gui.emu.wording import add_sentences

add_sentences("""
Replace all of the text of {file} in Documents by “{text}” and save the file.
de: Ersetze den ganzen Text von {file} in Documents durch „{text}“ und speichere die Datei.
fr: Remplace tout le texte de {file} dans Documents par “{text}” et enregistre le fichier.
es: Reemplaza todo el texto de {file} en Documents por “{text}” y guarda el archivo.

Replace “{old}” by “{new}” everywhere in {file} in Documents, and save it.
de: Ersetze überall in {file} in Documents „{old}“ durch „{new}“ und speichere die Datei.
fr: Remplace “{old}” par “{new}” partout dans {file} dans Documents, et enregistre le fichier.
es: Reemplaza “{old}” por “{new}” en todo el archivo {file} en Documents y guárdalo.

Add a first line “{text}” to {file} in Documents, and save it.
de: Füge in {file} in Documents „{text}“ als erste Zeile ein und speichere die Datei.
fr: Ajoute “{text}” comme première ligne dans {file} dans Documents, et enregistre le fichier.
es: Añade “{text}” como primera línea en {file} en Documents y guarda el archivo.

Add a last line “{text}” to {file} in Documents, and save it.
de: Füge in {file} in Documents „{text}“ als letzte Zeile ein und speichere die Datei.
fr: Ajoute “{text}” comme dernière ligne dans {file} dans Documents, et enregistre le fichier.
es: Añade “{text}” como última línea en {file} en Documents y guarda el archivo.

Save it as {new} in Documents, too ({old} is open).
de: Speichere die Datei auch als {new} in Documents ({old} ist geöffnet).
fr: Enregistre-le aussi sous {new} dans Documents ({old} est ouvert).
es: Guárdalo también como {new} en Documents ({old} está abierto).

Replace all of the text of {old} by “{text}”, but save it as {new} in Documents and leave {old} as it is.
de: Ersetze den ganzen Text von {old} durch „{text}“, aber speichere ihn als {new} in Documents und lass \
{old}, wie es ist.
fr: Remplace tout le texte de {old} par “{text}”, mais enregistre-le sous {new} dans Documents et laisse \
{old} tel quel.
es: Reemplaza todo el texto de {old} por “{text}”, pero guárdalo como {new} en Documents y deja {old} como \
está.

Write a text file {file} that says “{text}” in {folder}.
de: Schreibe in {folder} eine Textdatei {file}, in der „{text}“ steht.
fr: Écris dans {folder} un fichier texte {file} qui dit “{text}”.
es: Escribe en {folder} un archivo de texto {file} que diga “{text}”.

Whose name is in {file} in Documents? Answer with the name.
de: Wessen Name steht in {file} in Documents? Antworte mit dem Namen.
fr: Quel prénom est écrit dans {file} dans Documents ? Réponds par ce prénom.
es: ¿Qué nombre de persona está en {file} en Documents? Responde con el nombre.

Put the event that {file} in Documents is about into the calendar.
de: Trage den Termin, von dem {file} in Documents handelt, in den Kalender ein.
fr: Inscris dans le calendrier l’événement dont parle {file} dans Documents.
es: Anota en el calendario el evento del que trata {file} en Documents.

Put the event that {file} in Documents is about into the calendar, then delete the file.
de: Trage den Termin, von dem {file} in Documents handelt, in den Kalender ein, dann lösche die Datei.
fr: Inscris dans le calendrier l’événement dont parle {file} dans Documents, puis supprime le fichier.
es: Anota en el calendario el evento del que trata {file} en Documents y después elimina el archivo.
""")
add_sentences("""
Make a folder called {name} in {folder}.
de: Lege in {folder} einen Ordner namens {name} an.
fr: Crée dans {folder} un dossier nommé {name}.
es: Crea en {folder} una carpeta llamada {name}.

Make a folder called {name} in {folder}, and in that one a folder called {below}.
de: Lege in {folder} einen Ordner namens {name} an und in diesem einen Ordner namens {below}.
fr: Crée dans {folder} un dossier nommé {name}, et dans celui-ci un dossier nommé {below}.
es: Crea en {folder} una carpeta llamada {name}, y dentro de ella una carpeta llamada {below}.

Rename {files} in Documents.
de: Benenne in Documents {files} um.
fr: Renomme dans Documents {files}.
es: Renombra en Documents {files}.

{old} to {new}
de: {old} in {new}
fr: {old} en {new}
es: {old} como {new}

Move {files} into the folder {folder} (files can be dragged).
de: Verschiebe {files} in den Ordner {folder} (Dateien lassen sich ziehen).
fr: Déplace {files} dans le dossier {folder} (on peut faire glisser les fichiers).
es: Mueve {files} a la carpeta {folder} (los archivos se pueden arrastrar).

Move {file} into the folder {folder} in Documents.
de: Verschiebe {file} in den Ordner {folder} in Documents.
fr: Déplace {file} dans le dossier {folder} de Documents.
es: Mueve {file} a la carpeta {folder} de Documents.

Move {file} from {source} into the folder {folder} in Documents.
de: Verschiebe {file} aus {source} in den Ordner {folder} in Documents.
fr: Déplace {file} de {source} dans le dossier {folder} de Documents.
es: Mueve {file} de {source} a la carpeta {folder} de Documents.

Copy {file} from Documents into the folder {folder}.
de: Kopiere {file} aus Documents in den Ordner {folder}.
fr: Copie {file} de Documents dans le dossier {folder}.
es: Copia {file} de Documents a la carpeta {folder}.

Copy {file} from Documents into the folder {folder}, then rename the copy to {new}.
de: Kopiere {file} aus Documents in den Ordner {folder} und benenne die Kopie dann in {new} um.
fr: Copie {file} de Documents dans le dossier {folder}, puis renomme la copie en {new}.
es: Copia {file} de Documents a la carpeta {folder} y luego renombra la copia como {new}.

Delete {files} from Documents (the trash keeps them).
de: Lösche {files} aus Documents (der Papierkorb bewahrt auf, was gelöscht wird).
fr: Supprime {files} de Documents (la corbeille garde ce qui est supprimé).
es: Elimina {files} de Documents (la papelera conserva lo eliminado).

Restore {file} from the trash.
de: Stelle {file} aus dem Papierkorb wieder her.
fr: Restaure {file} depuis la corbeille.
es: Restaura {file} de la papelera.

Empty the trash.
de: Leere den Papierkorb.
fr: Vide la corbeille.
es: Vacía la papelera.

Open the file {file} in {folder}.
de: Öffne die Datei {file} in {folder}.
fr: Ouvre le fichier {file} dans {folder}.
es: Abre el archivo {file} en {folder}.

How many words does {file} in Documents have? Answer with the number.
de: Wie viele Wörter hat {file} in Documents? Antworte mit der Zahl.
fr: Combien de mots contient {file} dans Documents ? Réponds par le nombre.
es: ¿Cuántas palabras tiene {file} en Documents? Responde con el número.

Which file in {folder} is the largest? Answer with its name.
de: Welche Datei in {folder} ist die größte? Antworte mit ihrem Namen.
fr: Quel fichier dans {folder} est le plus grand ? Réponds par son nom.
es: ¿Qué archivo en {folder} es el más grande? Responde con su nombre.

Which file in {folder} is the smallest? Answer with its name.
de: Welche Datei in {folder} ist die kleinste? Antworte mit ihrem Namen.
fr: Quel fichier dans {folder} est le plus petit ? Réponds par son nom.
es: ¿Qué archivo en {folder} es el más pequeño? Responde con su nombre.

Somewhere in the folders of Documents is {file}. Delete it (“{search}” finds it).
de: Irgendwo in den Ordnern von Documents liegt {file}. Lösche diese Datei („{search}“ findet sie).
fr: Quelque part dans les dossiers de Documents se trouve {file}. Supprime-le (“{search}” le trouve).
es: En alguna de las carpetas de Documents está {file}. Elimínalo (“{search}” lo encuentra).

Delete {files} in {folder} (the trash keeps them).
de: Lösche {files} in {folder} (der Papierkorb bewahrt auf, was gelöscht wird).
fr: Supprime {files} dans {folder} (la corbeille garde ce qui est supprimé).
es: Elimina {files} en {folder} (la papelera conserva lo eliminado).

all pictures
de: alle Bilder
fr: toutes les images
es: todas las imágenes

all tables
de: alle Tabellen
fr: tous les tableaux
es: todas las tablas

all text files
de: alle Textdateien
fr: tous les fichiers texte
es: todos los archivos de texto

Move {files} and {last} in Documents into the folder {folder}.
de: Verschiebe {files} und {last} in Documents in den Ordner {folder}.
fr: Déplace {files} et {last} de Documents dans le dossier {folder}.
es: Mueve {files} y también {last} de Documents a la carpeta {folder}.

Copy all files from the folder {source} in Documents into the folder {folder} beside it.
de: Kopiere alle Dateien aus dem Ordner {source} in Documents in den Ordner {folder} daneben.
fr: Copie tous les fichiers du dossier {source} de Documents dans le dossier {folder} à côté.
es: Copia todos los archivos de la carpeta {source} de Documents a la carpeta {folder}, que está al lado.

Copy all files except {file} from the folder {source} in Documents into the folder {folder} beside it.
de: Kopiere alle Dateien außer {file} aus dem Ordner {source} in Documents in den Ordner {folder} daneben.
fr: Copie tous les fichiers sauf {file} du dossier {source} de Documents dans le dossier {folder} à côté.
es: Copia todos los archivos menos {file} de la carpeta {source} de Documents a la carpeta {folder}, que \
está al lado.
""")
