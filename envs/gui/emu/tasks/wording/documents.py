"""Goals of slides and programs."""

from vlrl.envs.gui.emu.wording import add_sentences

add_sentences("""
Then save the presentation.
de: Speichere dann die Präsentation.
fr: Puis enregistre la présentation.
es: Después guarda la presentación.

Change the title of the slide “{slide}” to “{title}”.
de: Ändere den Titel der Folie „{slide}“ in „{title}“.
fr: Change le titre de la diapositive “{slide}” en “{title}”.
es: Cambia el título de la diapositiva “{slide}” a “{title}”.

Change the title of slide {slide} to “{title}”.
de: Ändere den Titel von Folie {slide} in „{title}“.
fr: Change le titre de la diapositive {slide} en “{title}”.
es: Cambia el título de la diapositiva {slide} a “{title}”.

Change the title of the slide that says “{slide}” to “{title}”.
de: Ändere den Titel der Folie, auf der „{slide}“ steht, in „{title}“.
fr: Change le titre de la diapositive où il est écrit “{slide}” en “{title}”.
es: Cambia el título de la diapositiva que dice “{slide}” a “{title}”.

Add “{point}” as the last point of the slide “{slide}”.
de: Füge der Folie „{slide}“ als letzten Punkt „{point}“ hinzu.
fr: Ajoute “{point}” comme dernier point de la diapositive “{slide}”.
es: Añade “{point}” como último punto de la diapositiva “{slide}”.

Add “{point}” as the last point of slide {slide}.
de: Füge Folie {slide} als letzten Punkt „{point}“ hinzu.
fr: Ajoute “{point}” comme dernier point de la diapositive {slide}.
es: Añade “{point}” como último punto de la diapositiva {slide}.

Add “{point}” as the last point of the slide that says “{slide}”.
de: Füge der Folie, auf der „{slide}“ steht, als letzten Punkt „{point}“ hinzu.
fr: Ajoute “{point}” comme dernier point de la diapositive où il est écrit “{slide}”.
es: Añade “{point}” como último punto de la diapositiva que dice “{slide}”.

Delete the slide “{slide}”.
de: Lösche die Folie „{slide}“.
fr: Supprime la diapositive “{slide}”.
es: Elimina la diapositiva “{slide}”.

Delete slide {slide}.
de: Lösche Folie {slide}.
fr: Supprime la diapositive {slide}.
es: Elimina la diapositiva {slide}.

Add a slide at the end with the title “{title}” and the point {points}.
de: Füge am Ende eine Folie mit dem Titel „{title}“ und dem Punkt {points} hinzu.
fr: Ajoute à la fin une diapositive avec le titre “{title}” et le point {points}.
es: Añade al final una diapositiva con el título “{title}” y el punto {points}.

Add a slide right after “{after}” with the title “{title}” and the points {points}.
de: Füge direkt nach „{after}“ eine Folie mit dem Titel „{title}“ und den Punkten {points} hinzu.
fr: Ajoute juste après “{after}” une diapositive avec le titre “{title}” et les points {points}.
es: Añade justo después de “{after}” una diapositiva con el título “{title}” y los puntos {points}.

Delete all slides that have a title and nothing else.
de: Lösche alle Folien, die einen Titel und sonst nichts haben.
fr: Supprime toutes les diapositives qui ont un titre et rien d’autre.
es: Elimina todas las diapositivas que tienen un título y nada más.

Move the slide “{title}” right after “{after}”.
de: Verschiebe die Folie „{title}“ direkt hinter „{after}“.
fr: Déplace la diapositive “{title}” juste après “{after}”.
es: Mueve la diapositiva “{title}” justo después de “{after}”.

Put the slides with a number in their title into the order of these numbers.
de: Bringe die Folien mit einer Zahl im Titel in die Reihenfolge dieser Zahlen.
fr: Mets les diapositives qui ont un nombre dans leur titre dans l’ordre de ces nombres.
es: Pon las diapositivas que tienen un número en el título en el orden de esos números.

What is the first point of the slide “{title}”? Answer with its text.
de: Was ist der erste Punkt der Folie „{title}“? Antworte mit seinem Text.
fr: Quel est le premier point de la diapositive “{title}” ? Réponds par son texte.
es: ¿Cuál es el primer punto de la diapositiva “{title}”? Responde con su texto.

What is the second point of the slide “{title}”? Answer with its text.
de: Was ist der zweite Punkt der Folie „{title}“? Antworte mit seinem Text.
fr: Quel est le deuxième point de la diapositive “{title}” ? Réponds par son texte.
es: ¿Cuál es el segundo punto de la diapositiva “{title}”? Responde con su texto.

What is the third point of the slide “{title}”? Answer with its text.
de: Was ist der dritte Punkt der Folie „{title}“? Antworte mit seinem Text.
fr: Quel est le troisième point de la diapositive “{title}” ? Réponds par son texte.
es: ¿Cuál es el tercer punto de la diapositiva “{title}”? Responde con su texto.

In which room is the key, by the notes of “{title}”? Answer with the number.
de: In welchem Raum ist laut den Notizen von „{title}“ der Schlüssel? Antworte mit der Zahl.
fr: Dans quelle salle est la clé, d’après les notes de “{title}” ? Réponds par le nombre.
es: ¿En qué sala está la llave, según las notas de “{title}”? Responde con el número.

Which slide says “{point}”? Answer with its title.
de: Auf welcher Folie steht „{point}“? Antworte mit ihrem Titel.
fr: Sur quelle diapositive est-il écrit “{point}” ? Réponds par son titre.
es: ¿Qué diapositiva dice “{point}”? Responde con su título.
""")
add_sentences("""
The list of problems in the app {app} shows a slip of the pen in one line: a colon or a bracket is missing \
there, or two letters of a name have changed places. Fix it and save.
de: Die Liste der Probleme in der App {app} zeigt einen Schreibfehler in einer Zeile: Dort fehlt ein \
Doppelpunkt oder eine Klammer, oder zwei Buchstaben eines Namens sind vertauscht. Behebe ihn und speichere.
fr: La liste des problèmes dans l’application {app} montre une faute de frappe dans une ligne : il y manque \
deux-points ou une parenthèse, ou deux lettres d’un nom sont inversées. Corrige-la et enregistre.
es: La lista de problemas de la aplicación {app} muestra un error de escritura en una línea: ahí faltan los \
dos puntos o un paréntesis, o dos letras de un nombre están cambiadas. Corrígelo y guarda.

The list of problems in the app {app} shows a slip of the pen in a line of two files each: a colon or a \
bracket is missing there, or two letters of a name have changed places. Fix it and save.
de: Die Liste der Probleme in der App {app} zeigt in zwei Dateien je einen Schreibfehler in einer Zeile: \
Dort fehlt ein Doppelpunkt oder eine Klammer, oder zwei Buchstaben eines Namens sind vertauscht. Behebe \
beide und speichere.
fr: La liste des problèmes dans l’application {app} montre une faute de frappe dans une ligne de chacun de \
deux fichiers : il y manque deux-points ou une parenthèse, ou deux lettres d’un nom sont inversées. Corrige \
les deux et enregistre.
es: La lista de problemas de la aplicación {app} muestra un error de escritura en una línea de cada uno de \
dos archivos: ahí faltan los dos puntos o un paréntesis, o dos letras de un nombre están cambiadas. Corrige \
ambos y guarda.

In the app {app}, rename the function {old} to {new} everywhere in {file} and save.
de: Benenne in der App {app} die Funktion {old} überall in {file} in {new} um und speichere.
fr: Dans l’application {app}, renomme la fonction {old} en {new} partout dans {file} et enregistre.
es: En la aplicación {app}, cambia el nombre de la función {old} a {new} en todo {file} y guarda.

In the app {app}, rename the function {old} to {new} everywhere in {file} and in main.py, which imports it, \
and save.
de: Benenne in der App {app} die Funktion {old} überall in {file} und in main.py, wo sie importiert wird, in \
{new} um und speichere.
fr: Dans l’application {app}, renomme la fonction {old} en {new} partout dans {file} et dans main.py, qui \
l’importe, et enregistre.
es: En la aplicación {app}, cambia el nombre de la función {old} a {new} en todo {file} y en main.py, que la \
importa, y guarda.

Leave the function {other} its name.
de: Lass der Funktion {other} ihren Namen.
fr: Laisse son nom à la fonction {other}.
es: Deja su nombre a la función {other}.

In which line of {file} is the function {name} defined? Answer with the number.
de: In welcher Zeile von {file} ist die Funktion {name} definiert? Antworte mit der Zahl.
fr: À quelle ligne de {file} la fonction {name} est-elle définie ? Réponds par le nombre.
es: ¿En qué línea de {file} está definida la función {name}? Responde con el número.

In which file of the project is the function {name} defined? Answer with its name.
de: In welcher Datei des Projekts ist die Funktion {name} definiert? Antworte mit dem Namen der Datei.
fr: Dans quel fichier du projet la fonction {name} est-elle définie ? Réponds par le nom du fichier.
es: ¿En qué archivo del proyecto está definida la función {name}? Responde con el nombre del archivo.

Which value has {parameter} in {name} if a call gives none? Answer with the number.
de: Welchen Wert hat {parameter} in {name}, wenn ein Aufruf keinen angibt? Antworte mit der Zahl.
fr: Quelle valeur a {parameter} dans {name} si un appel n’en donne pas ? Réponds par le nombre.
es: ¿Qué valor tiene {parameter} en {name} si una llamada no da ninguno? Responde con el número.

In the project in the app {app}, change the default {changes}, and save.
de: Ändere im Projekt in der App {app} den Standardwert {changes}, und speichere.
fr: Dans le projet de l’application {app}, change la valeur par défaut {changes}, et enregistre.
es: En el proyecto de la aplicación {app}, cambia el valor predeterminado {changes}, y guarda.

of {parameter} in the function {name} from {old} to {new}
de: von {parameter} in der Funktion {name} von {old} auf {new}
fr: de {parameter} dans la fonction {name} de {old} à {new}
es: de {parameter} en la función {name} de {old} a {new}
""")
