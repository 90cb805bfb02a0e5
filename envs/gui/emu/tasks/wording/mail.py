"""Goals of mail, also where the screen asks for something else than the user."""

from vlrl.envs.gui.emu.wording import add_sentences

add_sentences("""
the mail from {name}
de: die Nachricht von {name}
fr: le message envoyé par {name}
es: el mensaje de {name}

the mail “{name}”
de: die Nachricht „{name}“
fr: le message “{name}”
es: el mensaje “{name}”

every mail from {person}
de: jede Nachricht von {person}
fr: tous les messages envoyés par {person}
es: todos los mensajes de {person}

In {app}, put a star on {mails}, and on no other.
de: Markiere in der App {app} {mails} mit einem Stern, und keine andere.
fr: Dans l’application {app}, marque {mails} d’une étoile, et aucun autre.
es: En la aplicación {app}, destaca con una estrella {mails}, y ningún otro.

Delete {mails} in {app}.
de: Lösche {mails} in der App {app}.
fr: Supprime {mails} dans l’application {app}.
es: Elimina {mails} en la aplicación {app}.

In {app}, move {mails} to the folder “{folder}”.
de: Verschiebe in der App {app} {mails} in den Ordner „{folder}“.
fr: Dans l’application {app}, déplace {mails} dans le dossier “{folder}”.
es: En la aplicación {app}, mueve {mails} a la carpeta “{folder}”.

Somebody deleted mail by mistake. Move {mails} from the {trash} back to the {inbox}.
de: Jemand hat versehentlich Nachrichten gelöscht. Verschiebe {mails} aus dem Ordner {trash} zurück in den \
Ordner {inbox}.
fr: Quelqu’un a supprimé du courrier par erreur. Remets {mails} du dossier {trash} dans le dossier {inbox}.
es: Alguien eliminó correo por error. Devuelve {mails} de la carpeta {trash} a la carpeta {inbox}.

What is the {what} in a mail that you got?
de: Welche Zahl steht als „{what}“ in einer Nachricht, die du bekommen hast?
fr: Quel nombre est donné pour “{what}” dans un message que tu as reçu ?
es: ¿Qué número figura como “{what}” en un mensaje que has recibido?

{person} wrote to you.
de: {person} hat dir geschrieben.
fr: {person} t’a écrit.
es: {person} te escribió.

It is in the folder “{folder}”.
de: Sie liegt im Ordner „{folder}“.
fr: Il est dans le dossier “{folder}”.
es: Está en la carpeta “{folder}”.

It may be in any folder.
de: Sie kann in jedem Ordner liegen.
fr: Il peut être dans n’importe quel dossier.
es: Puede estar en cualquier carpeta.

Answer with the number.
de: Antworte mit der Zahl.
fr: Réponds par le nombre.
es: Responde con el número.

How many mails from {person} are in the {inbox}, and of which day is the oldest? Answer as “4, 17 May”.
de: Wie viele Nachrichten von {person} sind im Ordner {inbox}, und von welchem Tag ist die älteste? Antworte \
in der Form „4, 17 May“.
fr: Combien de messages envoyés par {person} sont dans le dossier {inbox}, et de quel jour est le plus \
ancien ? Réponds sous la forme “4, 17 May”.
es: ¿Cuántos mensajes de {person} hay en la carpeta {inbox}, y de qué día es el más antiguo? Responde en la \
forma “4, 17 May”.

Send a mail {mail}.
de: Sende eine Nachricht {mail}.
fr: Envoie un message {mail}.
es: Envía un mensaje {mail}.

Send a mail {mail}; then {second}.
de: Sende eine Nachricht {mail}; dann eine {second}.
fr: Envoie un message {mail} ; puis un autre {second}.
es: Envía un mensaje {mail}; luego otro {second}.

to {to} with the subject “{subject}” and the text “{text}”
de: an {to} mit dem Betreff „{subject}“ und dem Text „{text}“
fr: à {to} avec l’objet “{subject}” et le texte “{text}”
es: a {to} con el asunto “{subject}” y el texto “{text}”

Reply to the mail from {name}: “{text}”
de: Beantworte die Nachricht von {name}: „{text}“
fr: Réponds au message envoyé par {name} : “{text}”
es: Responde al mensaje de {name}: “{text}”

Reply to the mail “{name}”: “{text}”
de: Beantworte die Nachricht „{name}“: „{text}“
fr: Réponds au message “{name}” : “{text}”
es: Responde al mensaje “{name}”: “{text}”

Forward {mail} to {to}, without changing it.
de: Leite {mail} unverändert an {to} weiter.
fr: Transfère {mail} à {to}, sans le modifier.
es: Reenvía {mail} a {to}, sin cambiarlo.

Tidy up the {inbox} of {app}: {steps}. Leave the rest as it is.
de: Räume den Ordner {inbox} der App {app} auf: {steps}. Lass den Rest, wie er ist.
fr: Range le dossier {inbox} de l’application {app} : {steps}. Laisse le reste tel quel.
es: Ordena la carpeta {inbox} de la aplicación {app}: {steps}. Deja el resto como está.

put a star on “{subject}”
de: markiere „{subject}“ mit einem Stern
fr: marque “{subject}” d’une étoile
es: destaca con una estrella “{subject}”

delete “{subject}”
de: lösche „{subject}“
fr: supprime “{subject}”
es: elimina “{subject}”

move to “{folder}” “{subject}”
de: verschiebe „{subject}“ nach „{folder}“
fr: déplace “{subject}” vers “{folder}”
es: mueve “{subject}” a “{folder}”
""")
add_sentences("""
{person} sent you {file} by mail. Save it in Documents as {name}.
de: {person} hat dir {file} per E-Mail geschickt. Speichere die Datei in Documents als {name}.
fr: {person} t’a envoyé {file} par e-mail. Enregistre-le dans Documents sous {name}.
es: {person} te envió {file} por correo. Guárdalo en Documents como {name}.

Send {files} from Documents to {to} in one mail, subject “{subject}”, text “{text}”
de: Sende {files} aus Documents in einer einzigen Nachricht an {to}, Betreff „{subject}“, Text „{text}“
fr: Envoie {files} de Documents à {to} dans un seul message, objet “{subject}”, texte “{text}”
es: Envía {files} de Documents a {to} en un solo mensaje, asunto “{subject}”, texto “{text}”

{person} sent you the {what} by mail. Write it, the number alone, into a new text file “{what}.txt” in \
Documents.
de: {person} hat dir per E-Mail eine Zahl geschickt, „{what}“. Schreibe sie, die Zahl allein, in eine neue \
Textdatei „{what}.txt“ in Documents.
fr: {person} t’a envoyé par e-mail un nombre, “{what}”. Écris-le, le nombre seul, dans un nouveau fichier \
texte “{what}.txt” dans Documents.
es: {person} te envió por correo un número, “{what}”. Escríbelo, solo el número, en un archivo de texto \
nuevo “{what}.txt” en Documents.

Reply to the mail from {person}. What was asked for is in Documents; write just the digits.
de: Beantworte die Nachricht von {person}. Wonach gefragt wurde, steht in Documents; schreibe nur die Ziffern.
fr: Réponds au message envoyé par {person}. Ce qui est demandé est dans Documents ; écris seulement les \
chiffres.
es: Responde al mensaje de {person}. Lo que se pidió está en Documents; escribe solo las cifras.

Reply to the mail from {person}. What was asked for is in Documents; write just the digits, in the order \
that was asked, with a blank between them.
de: Beantworte die Nachricht von {person}. Wonach gefragt wurde, steht in Documents; schreibe nur die \
Ziffern, in der Reihenfolge der Fragen, mit einem Leerzeichen dazwischen.
fr: Réponds au message envoyé par {person}. Ce qui est demandé est dans Documents ; écris seulement les \
chiffres, dans l’ordre de la demande, séparés par un espace.
es: Responde al mensaje de {person}. Lo que se pidió está en Documents; escribe solo las cifras, en el orden \
en que se pidieron, separadas por un espacio.

Put {titles} into the calendar, under this title. {person} told you when by mail.
de: Trage {titles} unter diesem Titel in den Kalender ein. {person} hat dir per E-Mail gesagt, wann.
fr: Inscris {titles} dans le calendrier, sous ce titre. {person} t’a dit quand par e-mail.
es: Anota {titles} en el calendario, con este título. {person} te dijo cuándo por correo.
""")
