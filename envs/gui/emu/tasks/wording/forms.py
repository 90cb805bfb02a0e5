"""Goals with forms in the browser. The sites are English, and what they call things is quoted as it is."""

from vlrl.envs.gui.emu.wording import add_sentences

add_sentences("""
Put this into the cart of {host}: {things}. Nothing else.
de: Lege dies in den Warenkorb von {host}: {things}. Sonst nichts.
fr: Mets ceci dans le panier de {host} : {things}. Rien d’autre.
es: Pon esto en el carrito de {host}: {things}. Nada más.

{name}, {colour}, quantity {count}
de: „{name}“, Farbe „{colour}“, Menge {count}
fr: “{name}”, couleur “{colour}”, quantité {count}
es: “{name}”, color “{colour}”, cantidad {count}

Put the cheapest thing of the category {category} at {host} into the cart, once, in {colour}.
de: Lege den billigsten Artikel der Kategorie „{category}“ bei {host} in den Warenkorb, einmal, in der Farbe \
„{colour}“.
fr: Mets dans le panier l’article le moins cher de la catégorie “{category}” sur {host}, une fois, dans la \
couleur “{colour}”.
es: Pon en el carrito el artículo más barato de la categoría “{category}” en {host}, una vez, en el color \
“{colour}”.

Put the most expensive thing of the category {category} at {host} into the cart, once, in {colour}.
de: Lege den teuersten Artikel der Kategorie „{category}“ bei {host} in den Warenkorb, einmal, in der Farbe \
„{colour}“.
fr: Mets dans le panier l’article le plus cher de la catégorie “{category}” sur {host}, une fois, dans la \
couleur “{colour}”.
es: Pon en el carrito el artículo más caro de la categoría “{category}” en {host}, una vez, en el color \
“{colour}”.

Remove the {name} from the cart of {host}. Do not order.
de: Entferne „{name}“ aus dem Warenkorb von {host}. Bestelle nicht.
fr: Retire “{name}” du panier de {host}. Ne commande pas.
es: Quita “{name}” del carrito de {host}. No hagas el pedido.

Remove the {name} from the cart of {host}, and set the quantity of the {other} to {count}. Do not order.
de: Entferne „{name}“ aus dem Warenkorb von {host} und setze die Menge von „{other}“ auf {count}. Bestelle \
nicht.
fr: Retire “{name}” du panier de {host}, et mets la quantité de “{other}” à {count}. Ne commande pas.
es: Quita “{name}” del carrito de {host} y pon la cantidad de “{other}” en {count}. No hagas el pedido.

{delivery} delivery, payment by {payment}, wrapped as a gift
de: Lieferung „{delivery}“, Zahlung „{payment}“, als Geschenk verpackt
fr: livraison “{delivery}”, paiement “{payment}”, dans un emballage cadeau
es: entrega “{delivery}”, pago “{payment}”, envuelto para regalo

{delivery} delivery, payment by {payment}, not wrapped as a gift
de: Lieferung „{delivery}“, Zahlung „{payment}“, nicht als Geschenk verpackt
fr: livraison “{delivery}”, paiement “{payment}”, sans emballage cadeau
es: entrega “{delivery}”, pago “{payment}”, sin envolver para regalo

Order what is in the cart at {host} for {name}, {street}, {city}: {how}.
de: Bestelle, was bei {host} im Warenkorb liegt, für {name}, {street}, {city}: {how}.
fr: Commande ce qui est dans le panier sur {host} pour {name}, {street}, {city} : {how}.
es: Pide lo que está en el carrito en {host} para {name}, {street}, {city}: {how}.

Order a {thing}, {colour}, quantity {count}, at {host} for {name}, {street}, {city}: {how}.
de: Bestelle „{thing}“, Farbe „{colour}“, Menge {count}, bei {host} für {name}, {street}, {city}: {how}.
fr: Commande “{thing}”, couleur “{colour}”, quantité {count}, sur {host} pour {name}, {street}, {city} : \
{how}.
es: Pide “{thing}”, color “{colour}”, cantidad {count}, en {host} para {name}, {street}, {city}: {how}.

Order at {host} what {person} asks for by mail: {how}.
de: Bestelle bei {host}, worum {person} per E-Mail bittet: {how}.
fr: Commande sur {host} ce qui est demandé dans l’e-mail envoyé par {person} : {how}.
es: Pide en {host} lo que {person} solicita por correo: {how}.

{name} wants to become a member of {host}: e-mail {email}, password {password}, born {year}, {country}, \
membership {plan}, {likes}, {news}. Fill in the form.
de: {name} möchte Mitglied von {host} werden: E-Mail {email}, Passwort {password}, geboren {year}, \
„{country}“, Mitgliedschaft „{plan}“, {likes}, {news}. Fülle das Formular aus.
fr: {name} veut devenir membre de {host} : e-mail {email}, mot de passe {password}, année de naissance \
{year}, “{country}”, adhésion “{plan}”, {likes}, {news}. Remplis le formulaire.
es: {name} quiere hacerse miembro de {host}: correo {email}, contraseña {password}, año de nacimiento \
{year}, “{country}”, modalidad “{plan}”, {likes}, {news}. Rellena el formulario.

interests: {likes}
de: Interessen: {likes}
fr: centres d’intérêt : {likes}
es: intereses: {likes}

no interests
de: keine Interessen
fr: aucun centre d’intérêt
es: sin intereses

with the newsletter
de: mit dem Newsletter
fr: avec la newsletter
es: con el boletín

without the newsletter
de: ohne den Newsletter
fr: sans la newsletter
es: sin el boletín

Book {flight} from {start} to {end} on {day} June at {host} for {name}, {seat} seat, {bag}.
de: Buche {flight} von {start} nach {end} am {day}. Juni bei {host} für {name}, Sitzplatz „{seat}“, {bag}.
fr: Réserve {flight} (départ : {start}, arrivée : {end}) le {day} juin sur {host} pour {name}, siège \
“{seat}”, {bag}.
es: Reserva {flight} de {start} a {end} el {day} de junio en {host} para {name}, asiento “{seat}”, {bag}.

flight {number}
de: Flug {number}
fr: le vol {number}
es: el vuelo {number}

the cheapest flight
de: den billigsten Flug
fr: le vol le moins cher
es: el vuelo más barato

the flight that takes the least time
de: den Flug, der am wenigsten Zeit braucht,
fr: le vol qui prend le moins de temps
es: el vuelo que tarda menos

with a suitcase
de: mit Koffer
fr: avec une valise
es: con maleta

without a suitcase
de: ohne Koffer
fr: sans valise
es: sin maleta
""")
add_sentences("""
In the thread “{title}” at {host}, like what {names} wrote, and nothing else.
de: Gib im Thema „{title}“ bei {host} dem, was {names} geschrieben haben, ein Like, und sonst nichts.
fr: Dans le fil “{title}” sur {host}, mets un like à ce qui est écrit par {names}, et à rien d’autre.
es: En el hilo “{title}” en {host}, da un like a lo que escribieron {names}, y a nada más.

In the thread “{title}” at {host}, like what {names} wrote, and nothing else.|one
de: Gib im Thema „{title}“ bei {host} dem, was {names} geschrieben hat, ein Like, und sonst nichts.
fr: Dans le fil “{title}” sur {host}, mets un like à ce qui est écrit par {names}, et à rien d’autre.
es: En el hilo “{title}” en {host}, da un like a lo que escribió {names}, y a nada más.

Reply in the thread “{title}” at {host}: “{text}”
de: Antworte im Thema „{title}“ bei {host}: „{text}“
fr: Réponds dans le fil “{title}” sur {host} : “{text}”
es: Responde en el hilo “{title}” en {host}: “{text}”

Begin a new thread at {host} {thread}
de: Beginne bei {host} ein neues Thema {thread}
fr: Commence un nouveau fil sur {host} {thread}
es: Empieza un hilo nuevo en {host} {thread}

Begin a new thread at {host} {thread}; then one {second}
de: Beginne bei {host} ein neues Thema {thread}; dann eines {second}
fr: Commence un nouveau fil sur {host} {thread} ; puis un autre {second}
es: Empieza un hilo nuevo en {host} {thread}; luego otro {second}

in the board {board}, title “{title}”, text “{text}”
de: im Bereich „{board}“, Titel „{title}“, Text „{text}“
fr: dans la rubrique “{board}”, titre “{title}”, texte “{text}”
es: en la sección “{board}”, título “{title}”, texto “{text}”
""")
