"""Goals of the apps Paint and Photos."""

from vlrl.envs.gui.emu.wording import add_sentences

add_sentences("""
the {colour} disc
de: die {colour} Scheibe
fr: le disque {colour}
es: el disco {colour}

the {colour} square
de: das {colour} Quadrat
fr: le carré {colour}
es: el cuadrado {colour}

the {colour} bar
de: das {colour} Rechteck
fr: le rectangle {colour}
es: el rectángulo {colour}

Open {file} in Pictures with the app {app}.
de: Öffne {file} in Pictures mit der App {app}.
fr: Ouvre {file} dans Pictures avec l’application {app}.
es: Abre {file} en Pictures con la aplicación {app}.

Then save the picture.
de: Speichere dann das Bild.
fr: Puis enregistre l’image.
es: Después guarda la imagen.

Fill {shapes}.
de: Fülle {shapes}.
fr: Remplis {shapes}.
es: Rellena {shapes}.

{shape} with {colour}
de: {shape} mit {colour}
fr: {shape} de couleur {colour}
es: {shape} con color {colour}

Make the white background {colour}.
de: Färbe den weißen Hintergrund {colour}.
fr: Change la couleur du fond blanc en {colour}.
es: Cambia el color del fondo blanco a {colour}.

Draw a straight {colour} line from the middle of {first} to the middle of {second}.
de: Zeichne eine gerade {colour} Linie, die zwei Formen von Mitte zu Mitte verbindet: {first} und {second}.
fr: Trace un trait droit {colour} qui relie deux formes, d’un centre à l’autre : {first} et {second}.
es: Dibuja un trazo recto {colour} que una dos figuras, de centro a centro: {first} y {second}.

Draw a {colour} rectangle around {shape} that touches none of the shapes.
de: Zeichne um {shape} herum ein Rechteck in {colour}, das keine der Formen berührt.
fr: Encadre {shape} par un rectangle de couleur {colour} qui ne touche aucune des formes.
es: Enmarca {shape} con un rectángulo de color {colour} que no toque ninguna de las figuras.

Remove {shapes}, so that it is white there.
de: Entferne {shapes}, sodass es dort weiß ist.
fr: Efface {shapes}, pour que ce soit blanc à cet endroit.
es: Quita {shapes}, de modo que quede blanco ahí.

In the app {app}, make a new picture that is {colour} all over. Save it in Pictures as {file}.
de: Lege in der App {app} ein neues Bild an, das ganz {colour} ist. Speichere es in Pictures als {file}.
fr: Dans l’application {app}, crée une nouvelle image entièrement en {colour}. Enregistre-la dans Pictures \
sous {file}.
es: En la aplicación {app}, crea una imagen nueva toda de color {colour}. Guárdala en Pictures como {file}.

How many discs are there in the picture {file} in Pictures? (There are discs, squares and wide bars.)
de: Wie viele Scheiben sind im Bild {file} in Pictures? (Es gibt Scheiben, Quadrate und breite Rechtecke.)
fr: Combien de disques y a-t-il dans l’image {file} dans Pictures ? (Il y a des disques, des carrés et de \
larges rectangles.)
es: ¿Cuántos discos hay en la imagen {file} en Pictures? (Hay discos, cuadrados y rectángulos anchos.)

How many squares are there in the picture {file} in Pictures? (There are discs, squares and wide bars.)
de: Wie viele Quadrate sind im Bild {file} in Pictures? (Es gibt Scheiben, Quadrate und breite Rechtecke.)
fr: Combien de carrés y a-t-il dans l’image {file} dans Pictures ? (Il y a des disques, des carrés et de \
larges rectangles.)
es: ¿Cuántos cuadrados hay en la imagen {file} en Pictures? (Hay discos, cuadrados y rectángulos anchos.)

How many bars are there in the picture {file} in Pictures? (There are discs, squares and wide bars.)
de: Wie viele breite Rechtecke sind im Bild {file} in Pictures? (Es gibt Scheiben, Quadrate und breite \
Rechtecke.)
fr: Combien de larges rectangles y a-t-il dans l’image {file} dans Pictures ? (Il y a des disques, des \
carrés et de larges rectangles.)
es: ¿Cuántos rectángulos anchos hay en la imagen {file} en Pictures? (Hay discos, cuadrados y rectángulos \
anchos.)

What colour is the disc in the picture {file} in Pictures? (There are discs, squares and wide bars.)
de: Welche Farbe hat die Scheibe im Bild {file} in Pictures? (Es gibt Scheiben, Quadrate und breite \
Rechtecke.) Antworte mit dem Namen der Farbe.
fr: De quelle couleur est le disque dans l’image {file} dans Pictures ? (Il y a des disques, des carrés et \
de larges rectangles.) Réponds par le nom de la couleur.
es: ¿De qué color es el disco en la imagen {file} en Pictures? (Hay discos, cuadrados y rectángulos anchos.) \
Responde con el nombre del color.

What colour is the square in the picture {file} in Pictures? (There are discs, squares and wide bars.)
de: Welche Farbe hat das Quadrat im Bild {file} in Pictures? (Es gibt Scheiben, Quadrate und breite \
Rechtecke.) Antworte mit dem Namen der Farbe.
fr: De quelle couleur est le carré dans l’image {file} dans Pictures ? (Il y a des disques, des carrés et de \
larges rectangles.) Réponds par le nom de la couleur.
es: ¿De qué color es el cuadrado en la imagen {file} en Pictures? (Hay discos, cuadrados y rectángulos \
anchos.) Responde con el nombre del color.

What colour is the bar in the picture {file} in Pictures? (There are discs, squares and wide bars.)
de: Welche Farbe hat das breite Rechteck im Bild {file} in Pictures? (Es gibt Scheiben, Quadrate und breite \
Rechtecke.) Antworte mit dem Namen der Farbe.
fr: De quelle couleur est le large rectangle dans l’image {file} dans Pictures ? (Il y a des disques, des \
carrés et de larges rectangles.) Réponds par le nom de la couleur.
es: ¿De qué color es el rectángulo ancho en la imagen {file} en Pictures? (Hay discos, cuadrados y \
rectángulos anchos.) Responde con el nombre del color.
""")
NOUNS = {
    "boat": ("ein Boot", "das Boot", "un bateau", "le bateau", "un barco", "el barco"),
    "balloon": ("ein Ballon", "der Ballon", "un ballon", "le ballon", "un globo", "el globo"),
    "car": ("ein Auto", "das Auto", "une voiture", "la voiture", "un coche", "el coche"),
    "cottage": (
        *("ein Häuschen", "das Dach des Häuschens", "une maisonnette", "le toit de la maisonnette"),
        *("una casita", "el tejado de la casita"),
    ),
    "tent": (
        *("ein Zelt", "das Zelt", "une tente", "la tente"),
        *("una tienda de campaña", "la tienda de campaña"),
    ),
    "sunshade": (
        *("ein Sonnenschirm", "der Sonnenschirm", "un parasol", "le parasol"),
        *("una sombrilla", "la sombrilla"),
    ),
}
"""What photos show: with "a" and with "the", which for a cottage is its roof, in each language."""
for _noun, (_a_de, _the_de, _a_fr, _the_fr, _a_es, _the_es) in NOUNS.items():
    add_sentences(f"a {_noun}\nde: {_a_de}\nfr: {_a_fr}\nes: {_a_es}")
    _part = "roof of the cottage" if _noun == "cottage" else _noun
    add_sentences(f"{_part}|of a photo\nde: {_the_de}\nfr: {_the_fr}\nes: {_the_es}")
    if _noun != "cottage":
        _in = f"de: {_a_de} in {{colour}}\nfr: {_a_fr} de couleur {{colour}}\nes: {_a_es} de color {{colour}}"
        add_sentences(f"a {{colour}} {_noun}\n{_in}")
add_sentences("""
a cottage with a {colour} roof
de: ein Häuschen mit einem Dach in {colour}
fr: une maisonnette au toit de couleur {colour}
es: una casita con tejado de color {colour}

The photo {file} is not the right way up. Turn it.
de: Das Foto {file} liegt nicht richtig herum. Drehe es.
fr: La photo {file} n’est pas dans le bon sens. Tourne-la.
es: La foto {file} no está derecha. Gírala.

Not all photos are the right way up. Turn those that are not.
de: Nicht alle Fotos liegen richtig herum. Drehe die anderen.
fr: Certaines photos ne sont pas dans le bon sens. Tourne celles-là.
es: No todas las fotos están derechas. Gira las que no lo están.

Delete all photos that show {what} (the trash keeps them).
de: Lösche alle Fotos, auf denen {what} zu sehen ist (der Papierkorb bewahrt sie auf).
fr: Supprime toutes les photos qui montrent {what} (la corbeille les garde).
es: Elimina todas las fotos que muestran {what} (la papelera las conserva).

Delete the photos that are out of focus (the trash keeps them).
de: Lösche die Fotos, die unscharf sind (der Papierkorb bewahrt sie auf).
fr: Supprime les photos qui sont floues (la corbeille les garde).
es: Elimina las fotos que están desenfocadas (la papelera las conserva).

Make all photos that were taken at night favourites.
de: Mache alle Fotos, die nachts aufgenommen wurden, zu Favoriten.
fr: Mets dans les favoris toutes les photos prises de nuit.
es: Marca como favoritas todas las fotos tomadas de noche.

Make the photo that shows a boat a favourite.
de: Mache das Foto, auf dem ein Boot zu sehen ist, zum Favoriten.
fr: Mets dans les favoris la photo qui montre un bateau.
es: Marca como favorita la foto que muestra un barco.

Make an album “{album}” with all photos that show {what}.
de: Lege ein Album „{album}“ mit allen Fotos an, auf denen {what} zu sehen ist.
fr: Crée un album “{album}” avec toutes les photos qui montrent {what}.
es: Crea un álbum “{album}” con todas las fotos que muestran {what}.

Make an album “{album}” with all photos that were taken in the evening, at sunset.
de: Lege ein Album „{album}“ mit allen Fotos an, die abends, bei Sonnenuntergang, aufgenommen wurden.
fr: Crée un album “{album}” avec toutes les photos prises le soir, au coucher du soleil.
es: Crea un álbum “{album}” con todas las fotos tomadas al atardecer, con la puesta de sol.

Add the photo that shows {what} to the album “{album}”.
de: Füge das Foto, auf dem {what} zu sehen ist, zum Album „{album}“ hinzu.
fr: Ajoute la photo qui montre {what} à l’album “{album}”.
es: Añade la foto que muestra {what} al álbum “{album}”.

Add all photos that show {what} to the album “{album}”.
de: Füge alle Fotos, auf denen {what} zu sehen ist, zum Album „{album}“ hinzu.
fr: Ajoute toutes les photos qui montrent {what} à l’album “{album}”.
es: Añade todas las fotos que muestran {what} al álbum “{album}”.

Rename the photo that shows {what} to {name}.
de: Benenne das Foto, auf dem {what} zu sehen ist, in {name} um.
fr: Renomme en {name} la photo qui montre {what}.
es: Cambia el nombre de la foto que muestra {what} a {name}.

What colour is the {part} in the photo {file}?
de: Welche Farbe hat {part} auf dem Foto {file}? Antworte mit dem Namen der Farbe.
fr: De quelle couleur est {part} sur la photo {file} ? Réponds par le nom de la couleur.
es: ¿De qué color es {part} en la foto {file}? Responde con el nombre del color.

How many photos show {what}? Answer with the number.
de: Auf wie vielen Fotos ist {what} zu sehen? Antworte mit der Zahl.
fr: Combien de photos montrent {what} ? Réponds par le nombre.
es: ¿Cuántas fotos muestran {what}? Responde con el número.

When was the photo taken that shows {what}? Answer with the date that the app shows.
de: Wann wurde das Foto aufgenommen, auf dem {what} zu sehen ist? Antworte mit dem Datum, das die App zeigt.
fr: Quand a été prise la photo qui montre {what} ? Réponds par la date que l’application affiche.
es: ¿Cuándo se tomó la foto que muestra {what}? Responde con la fecha que muestra la aplicación.
""")
