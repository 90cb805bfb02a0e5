"""Goals of the calculator and the spreadsheet."""

from vlrl.envs.gui.emu.wording import add_sentences

add_sentences("""
plus
de: plus
fr: plus
es: más

minus
de: minus
fr: moins
es: menos

times
de: mal
fr: fois
es: por

divided by
de: geteilt durch
fr: divisé par
es: entre

Use the calculator, key by key from left to right: {sum} =
de: Benutze den Rechner, Taste für Taste von links nach rechts: {sum} =
fr: Utilise la calculatrice, touche par touche, de gauche à droite : {sum} =
es: Usa la calculadora, tecla a tecla, de izquierda a derecha: {sum} =

What is {sum}, one step after the other? Work it out with the calculator and answer with the number.
de: Was ist {sum}, ein Schritt nach dem anderen? Rechne es mit dem Rechner aus und antworte mit der Zahl.
fr: Combien font {sum}, une étape après l’autre ? Sers-toi de la calculatrice et réponds par le nombre.
es: ¿Cuánto es {sum}, un paso tras otro? Calcúlalo con la calculadora y responde con el número.

Clear the calculator's memory (MC), then add {numbers} to it (M+).
de: Lösche den Speicher des Rechners (MC), dann zähle {numbers} hinzu (M+).
fr: Efface la mémoire de la calculatrice (MC), puis ajoutes-y {numbers} (M+).
es: Borra la memoria de la calculadora (MC) y luego súmale {numbers} (M+).

How much is {share} per cent of {price}? Work it out with the calculator and answer.
de: Wie viel sind {share} Prozent von {price}? Rechne es mit dem Rechner aus und antworte.
fr: Combien font {share} pour cent de {price} ? Calcule-le avec la calculatrice et réponds.
es: ¿Cuánto es el {share} por ciento de {price}? Calcúlalo con la calculadora y responde.

Work out {sum} from left to right with the calculator, then replace all of the text of {file} by the result \
and save the file.
de: Rechne {sum} mit dem Rechner von links nach rechts aus, dann ersetze den ganzen Text von {file} durch \
das Ergebnis und speichere die Datei.
fr: Calcule {sum} de gauche à droite avec la calculatrice, puis remplace tout le texte de {file} par le \
résultat et enregistre le fichier.
es: Calcula {sum} de izquierda a derecha con la calculadora, luego reemplaza todo el texto de {file} por el \
resultado y guarda el archivo.
""")
add_sentences("""
Open {file} in Documents with the app {app}.
de: Öffne {file} in Documents mit der App {app}.
fr: Ouvre {file} dans Documents avec l’application {app}.
es: Abre {file} en Documents con la aplicación {app}.

Look into {file} in Documents.
de: Sieh in {file} in Documents nach.
fr: Regarde dans {file} dans Documents.
es: Mira en {file} en Documents.

Then save the file.
de: Speichere dann die Datei.
fr: Puis enregistre le fichier.
es: Después guarda el archivo.

Correct the table {table} so that {cells}.
de: Korrigiere die Tabelle {table} so, dass {cells}.
fr: Corrige le tableau {table} pour que {cells}.
es: Corrige la tabla {table} para que {cells}.

{row} has {number} under “{column}”
de: bei {row} unter „{column}“ {number} steht
fr: {row} ait {number} sous “{column}”
es: {row} tenga {number} bajo “{column}”

the sum of the numbers under “{column}”
de: die Summe der Zahlen unter „{column}“
fr: la somme des nombres sous “{column}”
es: la suma de los números bajo “{column}”

the average of the numbers under “{column}”
de: den Durchschnitt der Zahlen unter „{column}“
fr: la moyenne des nombres sous “{column}”
es: la media de los números bajo “{column}”

the smallest of the numbers under “{column}”
de: die kleinste der Zahlen unter „{column}“
fr: le plus petit des nombres sous “{column}”
es: el menor de los números bajo “{column}”

the largest of the numbers under “{column}”
de: die größte der Zahlen unter „{column}“
fr: le plus grand des nombres sous “{column}”
es: el mayor de los números bajo “{column}”

{what} into {cell}
de: {what} in {cell}
fr: {what} dans {cell}
es: {what} en {cell}

Put {places}.
de: Schreibe {places}.
fr: Mets {places}.
es: Pon {places}.

Add a column D with the heading “{heading}” that has “{first}” {sign} “{second}” in every row.
de: Füge eine Spalte D mit der Überschrift „{heading}“ hinzu, in der in jeder Zeile „{first}“ {sign} \
„{second}“ steht.
fr: Ajoute une colonne D avec le titre “{heading}” qui contient “{first}” {sign} “{second}” à chaque ligne.
es: Añade una columna D con el título “{heading}” que tenga “{first}” {sign} “{second}” en cada fila.

Sort the rows of {table} by “{column}”, from A to Z.
de: Sortiere die Zeilen von {table} nach „{column}“, von A bis Z.
fr: Trie les lignes de {table} par “{column}”, de A à Z.
es: Ordena las filas de {table} por “{column}”, de A a Z.

Sort the rows of {table} by “{column}”, from Z to A.
de: Sortiere die Zeilen von {table} nach „{column}“, von Z bis A.
fr: Trie les lignes de {table} par “{column}”, de Z à A.
es: Ordena las filas de {table} por “{column}”, de Z a A.

Sort the rows of {table} by “{column}”, with the smallest first.
de: Sortiere die Zeilen von {table} nach „{column}“, die kleinste Zahl zuerst.
fr: Trie les lignes de {table} par “{column}”, le plus petit nombre en premier.
es: Ordena las filas de {table} por “{column}”, con el número menor primero.

Sort the rows of {table} by “{column}”, with the largest first.
de: Sortiere die Zeilen von {table} nach „{column}“, die größte Zahl zuerst.
fr: Trie les lignes de {table} par “{column}”, le plus grand nombre en premier.
es: Ordena las filas de {table} por “{column}”, con el número mayor primero.

Delete the row of {names} from the table {table}.
de: Lösche die Zeile von {names} aus der Tabelle {table}.
fr: Supprime la ligne {names} du tableau {table}.
es: Elimina la fila de {names} de la tabla {table}.

Delete the rows of {names} from the table {table}.
de: Lösche die Zeilen von {names} aus der Tabelle {table}.
fr: Supprime les lignes {names} du tableau {table}.
es: Elimina las filas de {names} de la tabla {table}.

Insert a new row right above “{row}” with {first}, {second} and {third}.
de: Füge direkt über „{row}“ eine neue Zeile mit {first}, {second} und {third} ein.
fr: Insère juste au-dessus de “{row}” une nouvelle ligne avec {first}, {second} et {third}.
es: Inserta justo encima de “{row}” una fila nueva con {first}, {second} y {third}.

What number does {row} have under “{column}”?
de: Welche Zahl hat {row} unter „{column}“?
fr: Quel nombre a {row} sous “{column}” ?
es: ¿Qué número tiene {row} bajo “{column}”?

Which row has the largest number under “{column}”? Answer with its name.
de: Welche Zeile hat die größte Zahl unter „{column}“? Antworte mit ihrem Namen.
fr: Quelle ligne a le plus grand nombre sous “{column}” ? Réponds par son nom.
es: ¿Qué fila tiene el número mayor bajo “{column}”? Responde con su nombre.

What do the numbers under “{column}” add up to?
de: Was ergeben die Zahlen unter „{column}“ zusammen?
fr: Quel est le total des nombres sous “{column}” ?
es: ¿Cuánto suman los números bajo “{column}”?
""")
