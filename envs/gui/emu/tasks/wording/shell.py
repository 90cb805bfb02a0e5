"""Goals of the first tasks: buttons, windows, settings, notices."""

from vlrl.envs.gui.emu.wording import add_sentences

add_sentences("""
In the app {app}: {goal}
de: In der App {app}: {goal}
fr: Utilise l’application {app}. {goal}
es: Usa la aplicación {app}. {goal}

Press the button “{text}”.
de: Drücke die Schaltfläche „{text}“.
fr: Appuie sur le bouton “{text}”.
es: Pulsa el botón “{text}”.

Click the button “{text}”.
de: Klicke auf die Schaltfläche „{text}“.
fr: Clique sur le bouton “{text}”.
es: Haz clic en el botón “{text}”.

Click the {colour} button.
de: Klicke auf die {colour} Schaltfläche.
fr: Clique sur le bouton {colour}.
es: Haz clic en el botón {colour}.

It is the colour that counts, not the text.
de: Es kommt auf die Farbe an, nicht auf den Text.
fr: C’est la couleur qui compte, pas le texte.
es: Lo que cuenta es el color, no el texto.

Click the {first} button, then the {second} one.
de: Klicke auf die {first} Schaltfläche, dann auf die {second}.
fr: Clique sur le bouton {first}, puis sur le {second}.
es: Haz clic en el botón {first} y luego en el {second}.

Click the {first} button, then the {second} one, then the {third} one.
de: Klicke auf die {first} Schaltfläche, dann auf die {second}, dann auf die {third}.
fr: Clique sur le bouton {first}, puis sur le {second}, puis sur le {third}.
es: Haz clic en el botón {first}, luego en el {second} y después en el {third}.

Click the button of another colour than the rest.
de: Klicke auf die Schaltfläche, die eine andere Farbe hat als die übrigen.
fr: Clique sur le bouton qui n’a pas la même couleur que les autres.
es: Haz clic en el botón que tiene un color distinto al de los demás.

Click the coloured buttons until none is left.
de: Klicke auf die farbigen Schaltflächen, bis keine mehr übrig ist.
fr: Clique sur les boutons colorés jusqu’à ce qu’il n’en reste plus.
es: Haz clic en los botones de color hasta que no quede ninguno.

Open {apps}.
de: Öffne {apps}.
fr: Ouvre {apps}.
es: Abre {apps}.

Close the window of {app} and leave the others open.
de: Schließe das Fenster von {app} und lass die anderen offen.
fr: Ferme la fenêtre {app} et laisse les autres ouvertes.
es: Cierra la ventana de {app} y deja abiertas las demás.

Close all windows except that of {app}.
de: Schließe alle Fenster außer dem von {app}.
fr: Ferme toutes les fenêtres sauf la fenêtre {app}.
es: Cierra todas las ventanas menos la de {app}.

Minimise the window of {app}, and only that one.
de: Minimiere das Fenster von {app}, und nur dieses.
fr: Réduis la fenêtre {app}, et elle seule.
es: Minimiza la ventana de {app}, y solo esa.

Maximise the window of {app}, and only that one.
de: Maximiere das Fenster von {app}, und nur dieses.
fr: Agrandis la fenêtre {app}, et elle seule.
es: Maximiza la ventana de {app}, y solo esa.

Bring the window of {app} to the front.
de: Hole das Fenster von {app} nach vorn.
fr: Mets la fenêtre {app} au premier plan.
es: Pon la ventana de {app} en primer plano.

Open the file {file} that lies on the desktop.
de: Öffne die Datei {file}, die auf dem Desktop liegt.
fr: Ouvre le fichier {file} qui est sur le bureau.
es: Abre el archivo {file} que está en el escritorio.
""")
add_sentences("""
Set the volume to {volume} in the settings.
de: Stelle in den Einstellungen die Lautstärke auf {volume}.
fr: Règle le volume sur {volume} dans les paramètres.
es: Pon el volumen a {volume} en los ajustes.

Set the volume to {volume} in the settings and unmute the sound.
de: Stelle in den Einstellungen die Lautstärke auf {volume} und hebe die Stummschaltung auf.
fr: Règle le volume sur {volume} dans les paramètres et réactive le son.
es: Pon el volumen a {volume} en los ajustes y vuelve a activar el sonido.

In the settings, {changes}.
de: In den Einstellungen: {changes}.
fr: Dans les paramètres, {changes}.
es: En los ajustes, {changes}.

turn “{name}” on
de: schalte „{name}“ ein
fr: active “{name}”
es: activa “{name}”

turn “{name}” off
de: schalte „{name}“ aus
fr: désactive “{name}”
es: desactiva “{name}”

Connect to the Wi-Fi network “{network}”.
de: Verbinde dich mit dem WLAN „{network}“.
fr: Connecte-toi au réseau Wi-Fi “{network}”.
es: Conéctate a la red wifi “{network}”.

Set the power mode to “{mode}”.
de: Stelle den Energiemodus auf „{mode}“.
fr: Règle le mode d’énergie sur “{mode}”.
es: Cambia el modo de energía a “{mode}”.

Set the power mode to “{mode}” and let the screen go off after {minutes} minutes.
de: Stelle den Energiemodus auf „{mode}“ und lass den Bildschirm nach {minutes} Minuten ausgehen.
fr: Règle le mode d’énergie sur “{mode}” et fais éteindre l’écran après {minutes} minutes.
es: Cambia el modo de energía a “{mode}” y haz que la pantalla se apague tras {minutes} minutos.

Change the theme to {theme}.
de: Ändere das Farbschema in {theme}.
fr: Choisis le thème {theme}.
es: Cambia el tema a {theme}.

Change the theme to {theme} and set the brightness to {brightness}.
de: Ändere das Farbschema in {theme} und stelle die Helligkeit auf {brightness}.
fr: Choisis le thème {theme} et règle la luminosité sur {brightness}.
es: Cambia el tema a {theme} y pon el brillo a {brightness}.

Change the theme to {theme} and set the brightness to {brightness}, and turn “{name}” on.
de: Ändere das Farbschema in {theme}, stelle die Helligkeit auf {brightness} und schalte „{name}“ ein.
fr: Choisis le thème {theme}, règle la luminosité sur {brightness} et active “{name}”.
es: Cambia el tema a {theme}, pon el brillo a {brightness} y activa “{name}”.

Which Wi-Fi network is chosen?
de: Welches WLAN ist ausgewählt?
fr: Quel réseau Wi-Fi est choisi ?
es: ¿Qué red wifi está elegida?

After how many minutes does the screen go off?
de: Nach wie vielen Minuten geht der Bildschirm aus?
fr: Après combien de minutes l’écran s’éteint-il ?
es: ¿Tras cuántos minutos se apaga la pantalla?

Which power mode is chosen?
de: Welcher Energiemodus ist ausgewählt?
fr: Quel mode d’énergie est choisi ?
es: ¿Qué modo de energía está elegido?

Look in the settings and answer.
de: Sieh in den Einstellungen nach und antworte.
fr: Regarde dans les paramètres et réponds.
es: Mira en los ajustes y responde.

Reset all settings to what they were at first.
de: Setze alle Einstellungen auf ihre ursprünglichen Werte zurück.
fr: Remets tous les paramètres à leur état d’origine.
es: Restablece todos los ajustes a su estado inicial.
""")
add_sentences("""
Open the notification of {person}’s mail. What is the {what}? Answer with the number.
de: Öffne die Benachrichtigung zur Nachricht von {person}. Welche Zahl nennt sie als „{what}“? Antworte mit \
der Zahl.
fr: Ouvre la notification du message envoyé par {person}. Quel nombre donne-t-il pour “{what}” ? Réponds par \
le nombre.
es: Abre la notificación del mensaje de {person}. ¿Qué número da como “{what}”? Responde con el número.

At what time is “{title}”? A notification says it. Answer with the time.
de: Um wie viel Uhr ist „{title}“? Eine Benachrichtigung sagt es. Antworte mit der Uhrzeit.
fr: À quelle heure est “{title}” ? Une notification le dit. Réponds par l’heure.
es: ¿A qué hora es “{title}”? Lo dice una notificación. Responde con la hora.

Dismiss all notifications of {app}, and keep the others.
de: Schließe alle Benachrichtigungen von {app} und behalte die anderen.
fr: Ignore toutes les notifications de l’application {app} et garde les autres.
es: Descarta todas las notificaciones de {app} y conserva las demás.

In the quick settings (they are pulled down), {changes}.
de: In den Schnelleinstellungen (sie werden heruntergezogen): {changes}.
fr: Dans les réglages rapides (on les tire vers le bas), {changes}.
es: En los ajustes rápidos (se despliegan hacia abajo), {changes}.

In the quick settings (they open at the clock), {changes}.
de: In den Schnelleinstellungen (sie öffnen sich bei der Uhr): {changes}.
fr: Dans les réglages rapides (ils s’ouvrent à l’horloge), {changes}.
es: En los ajustes rápidos (se abren en el reloj), {changes}.

{changes}, and set the brightness to {brightness}
de: {changes}, und stelle die Helligkeit auf {brightness}
fr: {changes}, et règle la luminosité sur {brightness}
es: {changes}, y pon el brillo a {brightness}
""")
