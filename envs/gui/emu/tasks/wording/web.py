"""Goals in the browser: looking up, tabs, cookies, accounts. The sites are English, and quoted as that."""

from vlrl.envs.gui.emu.wording import add_sentences

add_sentences("""
In the {app}, {goal}
de: Im {app}: {goal}
fr: Dans le {app}, {goal}
es: En el {app}, {goal}

go to {page}.
de: Gehe zu {page}.
fr: va à {page}.
es: ve a {page}.

open the article “{title}” of the Encyclopaedia, {host}.
de: Öffne den Artikel „{title}“ der Encyclopaedia, {host}.
fr: ouvre l’article “{title}” de l’Encyclopaedia, {host}.
es: abre el artículo “{title}” de la Encyclopaedia, {host}.

open the Encyclopaedia, {host}. Find the river at which the capital of {land} lies, and open its article.
de: Öffne die Encyclopaedia, {host}. Finde den Fluss, an dem die Hauptstadt von {land} liegt, und öffne \
seinen Artikel.
fr: ouvre l’Encyclopaedia, {host}. Trouve le fleuve sur lequel se trouve la capitale du pays {land}, et \
ouvre son article.
es: abre la Encyclopaedia, {host}. Encuentra el río junto al que está la capital de {land} y abre su artículo.

At {host}, open and bookmark {pages} in the {app}, and nothing else.
de: Öffne bei {host} im {app} {pages} und setze je ein Lesezeichen darauf, und auf sonst nichts.
fr: Sur {host}, ouvre et marque {pages} dans le {app}, et rien d’autre.
es: En {host}, abre y guarda como marcador {pages} en el {app}, y nada más.

{first}, then {next}
de: {first}, dann {next}
fr: {first}, puis {next}
es: {first}, luego {next}

{first}; {next}
de: {first}; {next}
fr: {first} ; {next}
es: {first}; {next}

What is the area of {name}, in km²?
de: Welche Fläche hat {name}, in km²?
fr: Quelle est la superficie du pays {name}, en km² ?
es: ¿Cuál es la superficie de {name}, en km²?

In which year was {name} founded?
de: In welchem Jahr wurde {name} gegründet?
fr: En quelle année la ville {name} a-t-elle été fondée ?
es: ¿En qué año se fundó {name}?

How long is the river {name}, in km?
de: Wie lang ist der Fluss {name}, in km?
fr: Quelle est la longueur du fleuve {name}, en km ?
es: ¿Qué longitud tiene el río {name}, en km?

How long, in km, is the river at which the capital of {name} lies?
de: Wie lang, in km, ist der Fluss, an dem die Hauptstadt von {name} liegt?
fr: Quelle est la longueur, en km, du fleuve sur lequel se trouve la capitale du pays {name} ?
es: ¿Qué longitud, en km, tiene el río junto al que está la capital de {name}?

Look it up in the Encyclopaedia, {host}: {question} Answer with the number.
de: {question} Sieh in der Encyclopaedia nach, {host}. Antworte mit der Zahl.
fr: {question} Cherche dans l’Encyclopaedia, {host}. Réponds par le nombre.
es: {question} Búscalo en la Encyclopaedia, {host}. Responde con el número.

Which river is the longest? {places}. Look it up at {host}. Answer with the letter and the number in its \
article, as “A 1234”.
de: Welcher Fluss ist der längste? {places}. Sieh bei {host} nach. Antworte mit dem Buchstaben und der Zahl \
in seinem Artikel, in der Form „A 1234“.
fr: Quel fleuve est le plus long ? {places}. Cherche sur {host}. Réponds par la lettre et le nombre donné \
dans son article, sous la forme “A 1234”.
es: ¿Qué río es el más largo? {places}. Búscalo en {host}. Responde con la letra y el número que da su \
artículo, en la forma “A 1234”.

Which country is the largest? {places}. Look it up at {host}. Answer with the letter and the number in its \
article, as “A 1234”.
de: Welches Land ist das größte? {places}. Sieh bei {host} nach. Antworte mit dem Buchstaben und der Zahl in \
seinem Artikel, in der Form „A 1234“.
fr: Quel pays est le plus grand ? {places}. Cherche sur {host}. Réponds par la lettre et le nombre donné \
dans son article, sous la forme “A 1234”.
es: ¿Qué país es el más grande? {places}. Búscalo en {host}. Responde con la letra y el número que da su \
artículo, en la forma “A 1234”.

Open {pages} in the {app}, each in a tab of its own, in this order.
de: Öffne {pages} im {app}, jeweils in einem eigenen Tab, in dieser Reihenfolge.
fr: Ouvre {pages} dans le {app}, chacun dans son propre onglet, dans cet ordre.
es: Abre {pages} en el {app}, cada uno en su propia pestaña, en este orden.

Then go back to the tab of {host}.
de: Gehe dann zurück zum Tab von {host}.
fr: Puis reviens à l’onglet de {host}.
es: Después vuelve a la pestaña de {host}.

In the thread “{title}” at {host}, who wrote the answer with the most likes, and how many does it have? \
Answer as “anna 5”.
de: Wer hat im Thema „{title}“ bei {host} die Antwort mit den meisten Likes geschrieben, und wie viele hat \
sie? Antworte in der Form „anna 5“.
fr: Dans le fil “{title}” sur {host}, qui a écrit la réponse qui a le plus de likes, et combien en a-t-elle \
? Réponds sous la forme “anna 5”.
es: En el hilo “{title}” en {host}, ¿quién escribió la respuesta con más likes, y cuántos tiene? Responde en \
la forma “anna 5”.

What does the cheapest flight from {start} to {end} on {day} June cost at {host}? Answer with the price as \
it is shown.
de: Was kostet bei {host} der billigste Flug von {start} nach {end} am {day}. Juni? Antworte mit dem Preis, \
wie er angezeigt wird.
fr: Combien coûte sur {host} le vol le moins cher (départ : {start}, arrivée : {end}) le {day} juin ? \
Réponds par le prix tel qu’il est affiché.
es: ¿Cuánto cuesta en {host} el vuelo más barato de {start} a {end} el {day} de junio? Responde con el \
precio tal como se muestra.

What does the cheapest direct flight from {start} to {end} on {day} June cost at {host}? Answer with the \
price as it is shown.
de: Was kostet bei {host} der billigste Direktflug von {start} nach {end} am {day}. Juni? Antworte mit dem \
Preis, wie er angezeigt wird.
fr: Combien coûte sur {host} le vol direct le moins cher (départ : {start}, arrivée : {end}) le {day} juin ? \
Réponds par le prix tel qu’il est affiché.
es: ¿Cuánto cuesta en {host} el vuelo directo más barato de {start} a {end} el {day} de junio? Responde con \
el precio tal como se muestra.

Look up at {host} how many km long {rivers} is; write just the number, into a new text file rivers.txt in \
Documents.
de: Sieh bei {host} nach, wie viele km lang {rivers} ist; schreibe nur die Zahl in eine neue Textdatei \
rivers.txt in Documents.
fr: Cherche sur {host} combien de km mesure {rivers} ; écris seulement le nombre dans un nouveau fichier \
texte rivers.txt dans Documents.
es: Busca en {host} cuántos km de largo tiene {rivers}; escribe solo el número en un archivo de texto nuevo \
rivers.txt en Documents.

Look up at {host} how many km long {rivers} is; write just the number, each in a line of its own, in this \
order, into a new text file rivers.txt in Documents.
de: Sieh bei {host} nach, wie viele km lang {rivers} sind; schreibe nur die Zahlen, jede in einer eigenen \
Zeile, in dieser Reihenfolge, in eine neue Textdatei rivers.txt in Documents.
fr: Cherche sur {host} combien de km mesurent {rivers} ; écris seulement les nombres, chacun sur sa propre \
ligne, dans cet ordre, dans un nouveau fichier texte rivers.txt dans Documents.
es: Busca en {host} cuántos km de largo tienen {rivers}; escribe solo los números, cada uno en su propia \
línea, en este orden, en un archivo de texto nuevo rivers.txt en Documents.

Reply to the mail from {person}; what is asked for is at {host}.
de: Beantworte die Nachricht von {person}; wonach gefragt wird, steht bei {host}.
fr: Réponds au message envoyé par {person} ; ce qui est demandé se trouve sur {host}.
es: Responde al mensaje de {person}; lo que se pregunta está en {host}.
""")
add_sentences("""
at {host} allow cookies for {kind} and no others that are optional
de: erlaube bei {host} Cookies für „{kind}“ und keine anderen optionalen
fr: autorise sur {host} les cookies pour “{kind}” et aucun autre qui soit facultatif
es: permite en {host} las cookies para “{kind}” y ninguna otra que sea opcional

at {host} allow only the necessary cookies
de: erlaube bei {host} nur die notwendigen Cookies
fr: autorise sur {host} seulement les cookies nécessaires
es: permite en {host} solo las cookies necesarias

Sign in at {host} as {user} with the password {password}.
de: Melde dich bei {host} als {user} mit dem Passwort {password} an.
fr: Connecte-toi sur {host} comme {user} avec le mot de passe {password}.
es: Inicia sesión en {host} como {user} con la contraseña {password}.

Sign in at {host} with the user name and password in {path}, and look up the bill for {month}. Answer with \
the amount as it is shown.
de: Melde dich bei {host} mit dem Benutzernamen und Passwort aus {path} an und sieh die Rechnung für \
„{month}“ nach. Antworte mit dem Betrag, wie er angezeigt wird.
fr: Connecte-toi sur {host} avec le nom d’utilisateur et le mot de passe qui sont dans {path}, et cherche la \
facture de “{month}”. Réponds par le montant tel qu’il est affiché.
es: Inicia sesión en {host} con el usuario y la contraseña que están en {path} y busca la factura de \
“{month}”. Responde con el importe tal como se muestra.

Sign in at {host} with the user name and password in {path}, send the new reading {reading}, and sign out.
de: Melde dich bei {host} mit dem Benutzernamen und Passwort aus {path} an, sende den neuen Zählerstand \
{reading} und melde dich ab.
fr: Connecte-toi sur {host} avec le nom d’utilisateur et le mot de passe qui sont dans {path}, envoie le \
nouveau relevé {reading}, et déconnecte-toi.
es: Inicia sesión en {host} con el usuario y la contraseña que están en {path}, envía la nueva lectura \
{reading} y cierra la sesión.

At {host} in the {app}, open the listing “{title}”.
de: Öffne bei {host} im {app} die Anzeige „{title}“.
fr: Sur {host} dans le {app}, ouvre l’annonce “{title}”.
es: En {host} en el {app}, abre el anuncio “{title}”.

At {host} in the {app}, find the listing “{title}”. What does it cost? Answer with the price as it is shown.
de: Finde bei {host} im {app} die Anzeige „{title}“. Was kostet das Angebot? Antworte mit dem Preis, wie er \
angezeigt wird.
fr: Sur {host} dans le {app}, trouve l’annonce “{title}”. Quel est le prix ? Réponds par le prix tel qu’il \
est affiché.
es: En {host} en el {app}, encuentra el anuncio “{title}”. ¿Cuánto cuesta? Responde con el precio tal como \
se muestra.

At {host} in the {app}, save the listing “{title}” from {town}, and no other.
de: Merke dir bei {host} im {app} die Anzeige „{title}“ aus {town}, und keine andere.
fr: Sur {host} dans le {app}, enregistre l’annonce “{title}” qui vient de {town}, et aucune autre.
es: En {host} en el {app}, guarda el anuncio “{title}” de {town}, y ningún otro.

Subscribe to the newsletter of {host} with {email}.
de: Abonniere den Newsletter von {host} mit {email}.
fr: Abonne-toi à la newsletter de {host} avec {email}.
es: Suscríbete al boletín de {host} con {email}.

Subscribe to the newsletter of {host} and of {second} with the e-mail address in {path}.
de: Abonniere den Newsletter von {host} und den von {second} mit der E-Mail-Adresse aus {path}.
fr: Abonne-toi à la newsletter de {host} et à celle de {second} avec l’adresse e-mail qui est dans {path}.
es: Suscríbete al boletín de {host} y al de {second} con el correo electrónico que está en {path}.
""")
