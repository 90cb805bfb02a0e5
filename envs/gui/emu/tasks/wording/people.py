"""Goals about contacts, and those across several apps."""

from vlrl.envs.gui.emu.wording import add_sentences

add_sentences("""
add the contact {name} ({facts})
de: füge den Kontakt {name} ({facts}) hinzu
fr: ajoute le contact {name} ({facts})
es: añade el contacto {name} ({facts})

phone number {value}
de: Telefonnummer {value}
fr: numéro de téléphone {value}
es: número de teléfono {value}

e-mail address {value}
de: E-Mail-Adresse {value}
fr: adresse e-mail {value}
es: correo electrónico {value}

city {value}
de: Ort {value}
fr: ville {value}
es: ciudad {value}

Change {changes}.
de: Ändere {changes}.
fr: Remplace {changes}.
es: Cambia {changes}.

the phone number of {name} to {value}
de: die Telefonnummer von {name} in {value}
fr: le numéro de téléphone du contact {name} par {value}
es: el número de teléfono de {name} a {value}

the city of {name} to {value}
de: den Ort von {name} in {value}
fr: la ville du contact {name} par {value}
es: la ciudad de {name} a {value}

Delete {names} from the contacts.
de: Lösche {names} aus den Kontakten.
fr: Supprime {names} des contacts.
es: Elimina a {names} de los contactos.

Delete everybody who lives in {city}.
de: Lösche alle, die in {city} wohnen.
fr: Supprime toutes les personnes qui habitent à {city}.
es: Elimina a todos los que viven en {city}.

{name} is now called {new}. Change the contact.
de: {name} heißt jetzt {new}. Ändere den Kontakt.
fr: {name} s’appelle maintenant {new}. Modifie le contact.
es: {name} se llama ahora {new}. Cambia el contacto.

{name} is now called {new} and has the e-mail address {email}. Change the contact.
de: {name} heißt jetzt {new} und hat die E-Mail-Adresse {email}. Ändere den Kontakt.
fr: {name} s’appelle maintenant {new} et a l’adresse e-mail {email}. Modifie le contact.
es: {name} se llama ahora {new} y tiene el correo electrónico {email}. Cambia el contacto.

What is the phone number of {name}?
de: Welche Telefonnummer hat {name}?
fr: Quel est le numéro de téléphone du contact {name} ?
es: ¿Cuál es el número de teléfono de {name}?

What is the e-mail address of {name}?
de: Welche E-Mail-Adresse hat {name}?
fr: Quelle est l’adresse e-mail du contact {name} ?
es: ¿Cuál es el correo electrónico de {name}?

What is the city of {name}?
de: Welcher Ort steht bei {name}?
fr: Quelle est la ville du contact {name} ?
es: ¿Cuál es la ciudad de {name}?

Somebody called from {phone}. Who is it? Answer with the name in the contacts.
de: Jemand hat von {phone} angerufen. Wer ist es? Antworte mit dem Namen aus den Kontakten.
fr: Quelqu’un a appelé du {phone}. Qui est-ce ? Réponds par le nom qui est dans les contacts.
es: Alguien llamó desde el {phone}. ¿Quién es? Responde con el nombre que está en los contactos.
""")
add_sentences("""
The note {note} in Documents says whom I have to call and when. Add an alarm at that time with the phone \
number from {app} as its label.
de: Der Zettel {note} in Documents sagt, wen ich wann anrufen muss. Stelle einen neuen Wecker um diese Zeit, \
mit der Telefonnummer aus der App {app} als Bezeichnung.
fr: La note {note} dans Documents dit qui je dois appeler et quand. Ajoute une alarme à cette heure, avec le \
numéro de téléphone qui est dans l’application {app} comme nom.
es: La nota {note} en Documents dice a quién tengo que llamar y cuándo. Añade una alarma a esa hora con el \
número de teléfono que está en la aplicación {app} como etiqueta.

The note {note} in Documents says whom I have to call and when. Add an alarm at that time with the phone \
number from {app} as its label, then replace the text of the note by “{text}” and save it.
de: Der Zettel {note} in Documents sagt, wen ich wann anrufen muss. Stelle einen neuen Wecker um diese Zeit, \
mit der Telefonnummer aus der App {app} als Bezeichnung; ersetze dann den Text des Zettels durch „{text}“ \
und speichere ihn.
fr: La note {note} dans Documents dit qui je dois appeler et quand. Ajoute une alarme à cette heure, avec le \
numéro de téléphone qui est dans l’application {app} comme nom, puis remplace le texte de la note par \
“{text}” et enregistre-la.
es: La nota {note} en Documents dice a quién tengo que llamar y cuándo. Añade una alarma a esa hora con el \
número de teléfono que está en la aplicación {app} como etiqueta; luego reemplaza el texto de la nota por \
“{text}” y guárdala.

Put {what} in {file} into {cell}, save the table. Write that number, and nothing else, into a new text \
{path} with {app}.
de: Schreibe in {file} {what} in {cell} und speichere die Tabelle. Schreibe diese Zahl, und nichts anderes, \
mit der App {app} in einen neuen Text {path}.
fr: Dans {file}, mets {what} dans {cell} et enregistre le tableau. Écris ce nombre, et rien d’autre, dans un \
nouveau texte {path} avec l’application {app}.
es: En {file}, pon {what} en {cell} y guarda la tabla. Escribe ese número, y nada más, en un texto nuevo \
{path} con la aplicación {app}.

Then add an alarm at {time} with the label “{label}”.
de: Stelle dann einen neuen Wecker um {time} mit der Bezeichnung „{label}“.
fr: Puis ajoute une alarme à {time} avec le nom “{label}”.
es: Después añade una alarma a las {time} con la etiqueta “{label}”.

The text {note} in Documents is about a new guest. Add the guest to {app} with everything that it says, and \
as a new last row (name, city) to the table guests.csv in Documents. Save the table.
de: Der Text {note} in Documents handelt von einem neuen Gast. Füge ihn in der App {app} mit allem, was dort \
steht, hinzu und in der Tabelle guests.csv in Documents als neue letzte Zeile (Name, Ort). Speichere die \
Tabelle.
fr: Le texte {note} dans Documents parle d’une nouvelle personne invitée. Ajoute-la dans l’application {app} \
avec tout ce qu’il dit, et comme nouvelle dernière ligne (nom, ville) dans le tableau guests.csv de \
Documents. Enregistre le tableau.
es: El texto {note} en Documents trata de una persona invitada nueva. Añádela en la aplicación {app} con \
todo lo que dice, y como última fila nueva (nombre, ciudad) en la tabla guests.csv en Documents. Guarda la \
tabla.

Fill in the phone numbers in {file} in Documents from {app} and save it. Then write “{text}” with {editor} \
and save it as {new} in Documents.
de: Trage in {file} in Documents die Telefonnummern aus der App {app} ein und speichere die Tabelle. \
Schreibe dann mit der App {editor} „{text}“ und speichere es als {new} in Documents.
fr: Remplis les numéros de téléphone dans {file} dans Documents d’après l’application {app} et enregistre le \
tableau. Puis écris “{text}” avec l’application {editor} et enregistre-le sous {new} dans Documents.
es: Rellena los números de teléfono en {file} en Documents a partir de la aplicación {app} y guarda la \
tabla. Después escribe “{text}” con la aplicación {editor} y guárdalo como {new} en Documents.

Do what the text {note} in Documents says: first in {contacts}, then in {clock} (the word after the colon is \
the label).
de: Tu, was der Text {note} in Documents sagt: zuerst in der App {contacts}, dann in der App {clock} (was \
nach dem Doppelpunkt steht, ist die Bezeichnung).
fr: Fais ce que dit le texte {note} dans Documents : d’abord dans l’application {contacts}, puis dans \
l’application {clock} (ce qui suit les deux-points est le nom).
es: Haz lo que dice el texto {note} en Documents: primero en la aplicación {contacts}, luego en la \
aplicación {clock} (lo que va tras los dos puntos es la etiqueta).

Do what the text {note} in Documents says: first in {contacts}, then in {clock} (the word after the colon is \
the label), last in {settings}.
de: Tu, was der Text {note} in Documents sagt: zuerst in der App {contacts}, dann in der App {clock} (was \
nach dem Doppelpunkt steht, ist die Bezeichnung), zuletzt in der App {settings}.
fr: Fais ce que dit le texte {note} dans Documents : d’abord dans l’application {contacts}, puis dans \
l’application {clock} (ce qui suit les deux-points est le nom), enfin dans l’application {settings}.
es: Haz lo que dice el texto {note} en Documents: primero en la aplicación {contacts}, luego en la \
aplicación {clock} (lo que va tras los dos puntos es la etiqueta), por último en la aplicación {settings}.
""")
