"""Goals of the document viewer; what booklets say stays English, as texts on the screen do."""

from vlrl.envs.gui.emu.wording import add_sentences

add_sentences("""
In {file} in Documents: {goal}
de: Öffne {file} in Documents. {goal}
fr: Ouvre {file} dans Documents. {goal}
es: Abre {file} en Documents. {goal}

{question}, by the manual of the {device}? Answer with the number.
de: {question}, laut der Anleitung {device}? Antworte mit der Zahl.
fr: {question}, d’après le mode d’emploi {device} ? Réponds par le nombre.
es: ¿{question}, según el manual {device}? Responde con el número.

On which page does “{heading}” begin? Answer with the number.
de: Auf welcher Seite beginnt „{heading}“? Antworte mit der Zahl.
fr: À quelle page commence “{heading}” ? Réponds par le nombre.
es: ¿En qué página empieza “{heading}”? Responde con el número.

On which page does it say “{text}”? Answer with the number.
de: Auf welcher Seite steht „{text}“? Antworte mit der Zahl.
fr: À quelle page est-il écrit “{text}” ? Réponds par le nombre.
es: ¿En qué página dice “{text}”? Responde con el número.

How many times does the word “{text}” occur? Answer with the number.
de: Wie oft kommt das Wort „{text}“ vor? Antworte mit der Zahl.
fr: Combien de fois le mot “{text}” apparaît-il ? Réponds par le nombre.
es: ¿Cuántas veces aparece la palabra “{text}”? Responde con el número.

Go to page {page} of the manual that is open.
de: Gehe zu Seite {page} der geöffneten Anleitung.
fr: Va à la page {page} du mode d’emploi qui est ouvert.
es: Ve a la página {page} del manual que está abierto.

show the page where “{heading}” begins.
de: Zeige die Seite, auf der „{heading}“ beginnt.
fr: Affiche la page où commence “{heading}”.
es: Muestra la página donde empieza “{heading}”.

show the page that says “{text}”.
de: Zeige die Seite, auf der „{text}“ steht.
fr: Affiche la page où il est écrit “{text}”.
es: Muestra la página que dice “{text}”.

Bookmark the page on which “{heading}” begins.
de: Setze ein Lesezeichen auf die Seite, auf der „{heading}“ beginnt.
fr: Ajoute un signet à la page où commence “{heading}”.
es: Marca la página donde empieza “{heading}”.

bookmark the page that says “{text}”.
de: Setze ein Lesezeichen auf die Seite, auf der „{text}“ steht.
fr: Ajoute un signet à la page où il est écrit “{text}”.
es: Marca la página que dice “{text}”.

bookmark the page that says “{text}” and the page that says “{second}”.
de: Setze Lesezeichen auf die Seite, auf der „{text}“ steht, und auf die Seite, auf der „{second}“ steht.
fr: Ajoute un signet à la page où il est écrit “{text}” et à la page où il est écrit “{second}”.
es: Marca la página que dice “{text}” y la página que dice “{second}”.
""")
add_sentences("""
coffee machine
de: der Kaffeemaschine
fr: de la machine à café
es: de la cafetera

radio
de: des Radios
fr: de la radio
es: de la radio

heater
de: des Heizgeräts
fr: du radiateur
es: del calefactor

sewing machine
de: der Nähmaschine
fr: de la machine à coudre
es: de la máquina de coser

bread maker
de: des Brotbackautomaten
fr: de la machine à pain
es: de la panificadora

lawn mower
de: des Rasenmähers
fr: de la tondeuse
es: del cortacésped

printer
de: des Druckers
fr: de l’imprimante
es: de la impresora

scooter
de: des Rollers
fr: de la trottinette
es: del patinete
""")
add_sentences("""
How many centimetres away from curtains must it be kept
de: Wie viele Zentimeter Abstand muss das Gerät zu Vorhängen haben
fr: À combien de centimètres des rideaux faut-il tenir l’appareil
es: A cuántos centímetros de las cortinas hay que mantener el aparato

What is the order number of the spare belt
de: Welche Bestellnummer hat der Ersatzriemen
fr: Quel est le numéro de commande de la courroie de rechange
es: Cuál es el número de pedido de la correa de repuesto

How many minutes must one wait before it is switched on for the first time
de: Wie viele Minuten muss man warten, bevor man das Gerät zum ersten Mal einschaltet
fr: Combien de minutes faut-il attendre avant d’allumer l’appareil pour la première fois
es: Cuántos minutos hay que esperar antes de encender el aparato por primera vez

How many times does the green lamp blink when it is ready
de: Wie oft blinkt die grüne Lampe, wenn das Gerät bereit ist
fr: Combien de fois le voyant vert clignote-t-il quand l’appareil est prêt
es: Cuántas veces parpadea la luz verde cuando el aparato está listo

After how many days is the filter to be rinsed
de: Nach wie vielen Tagen ist der Filter auszuspülen
fr: Tous les combien de jours faut-il rincer le filtre
es: Cada cuántos días hay que enjuagar el filtro

Above how many degrees is it to be stored in winter
de: Über wie viel Grad ist das Gerät im Winter aufzubewahren
fr: Au-dessus de combien de degrés faut-il ranger l’appareil en hiver
es: A más de cuántos grados hay que guardar el aparato en invierno

Which number after the E means that the lid is open
de: Welche Zahl nach dem E bedeutet, dass der Deckel offen ist
fr: Quel nombre après le E signifie que le couvercle est ouvert
es: Qué número después de la E significa que la tapa está abierta

At which extension does the workshop answer
de: Unter welcher Durchwahl meldet sich die Werkstatt
fr: À quel numéro de poste répond l’atelier
es: En qué extensión responde el taller

How many hundred grams does it weigh without its cable
de: Wie viele hundert Gramm wiegt das Gerät ohne Kabel
fr: Combien de centaines de grammes l’appareil pèse-t-il sans son câble
es: Cuántos cientos de gramos pesa el aparato sin el cable

Within how many weeks is the card to be sent
de: Innerhalb von wie vielen Wochen ist die Karte einzusenden
fr: En combien de semaines au plus faut-il envoyer la carte
es: En cuántas semanas como máximo hay que enviar la tarjeta

Which container at the depot takes old batteries
de: Welcher Container im Depot nimmt alte Batterien an
fr: Quel conteneur du dépôt prend les vieilles piles
es: Qué contenedor del depósito acepta pilas viejas

How many euros does the travel bag cost
de: Wie viele Euro kostet die Reisetasche
fr: Combien d’euros coûte le sac de voyage
es: Cuántos euros cuesta la bolsa de viaje
""")
