"""Goals of the calendar and the clock."""

from vlrl.envs.gui.emu.apps.calendar import MONTHS
from vlrl.envs.gui.emu.strings import WORDS
from vlrl.envs.gui.emu.wording import add_sentences

for _month in MONTHS:
    _german, _french, _spanish = WORDS[_month]
    add_sentences(f"""
{{day}} {_month} {{year}}
de: {{day}}. {_german} {{year}}
fr: {{day}} {_french.lower()} {{year}}
es: {{day}} de {_spanish.lower()} de {{year}}
""")
add_sentences("""
1|of a month
de: 1
fr: 1er
es: 1

“{title}” on {date} at {time}
de: „{title}“ für den {date} um {time}
fr: “{title}” au {date} à {time}
es: “{title}” para el {date} a las {time}

Put {events} into the calendar.
de: Trage {events} in den Kalender ein.
fr: Inscris {events} dans le calendrier.
es: Anota {events} en el calendario.

Delete “{title}” on {date} from the calendar.
de: Lösche „{title}“ vom {date} aus dem Kalender.
fr: Supprime du calendrier “{title}” du {date}.
es: Elimina “{title}” del {date} del calendario.

Move “{title}” from {date} to {new}.
de: Verschiebe „{title}“ vom {date} auf den {new}.
fr: Déplace “{title}” du {date} au {new}.
es: Mueve “{title}” del {date} al {new}.

Move “{title}” from {date} to {new} at {time}.
de: Verschiebe „{title}“ vom {date} auf den {new} um {time}.
fr: Déplace “{title}” du {date} au {new} à {time}.
es: Mueve “{title}” del {date} al {new} a las {time}.

In the calendar, move “{title}” of {date} to {new} (events can be dragged).
de: Verschiebe im Kalender „{title}“ vom {date} auf den {new} (Termine lassen sich ziehen).
fr: Dans le calendrier, déplace “{title}” du {date} au {new} (on peut faire glisser les événements).
es: En el calendario, mueve “{title}” del {date} al {new} (los eventos se pueden arrastrar).

Change the title of “{title}” on {date} to “{new}”.
de: Ändere den Titel von „{title}“ vom {date} in „{new}“.
fr: Remplace le titre de “{title}” du {date} par “{new}”.
es: Cambia el título de “{title}” del {date} por “{new}”.

At what time does “{title}” begin on {date}? Answer as in 06:45.
de: Um wie viel Uhr beginnt „{title}“ am {date}? Antworte in der Form 06:45.
fr: À quelle heure commence “{title}” le {date} ? Réponds sous la forme 06:45.
es: ¿A qué hora empieza “{title}” el {date}? Responde en la forma 06:45.

What is in the calendar on {date}? Answer with the title of the event.
de: Was steht am {date} im Kalender? Antworte mit dem Titel des Termins.
fr: Qu’y a-t-il dans le calendrier le {date} ? Réponds par le titre de l’événement.
es: ¿Qué hay en el calendario el {date}? Responde con el título del evento.
""")
add_sentences("""
Add an alarm {alarm}.
de: Stelle einen neuen Wecker {alarm}.
fr: Ajoute une alarme {alarm}.
es: Añade una alarma {alarm}.

Add an alarm {first} and another one {second}.
de: Stelle einen neuen Wecker {first} und einen weiteren {second}.
fr: Ajoute une alarme {first} et une autre {second}.
es: Añade una alarma {first} y otra {second}.

at {time}
de: um {time}
fr: à {time}
es: a las {time}

at {time} with the label “{label}”
de: um {time} mit der Bezeichnung „{label}“
fr: à {time} avec le nom “{label}”
es: a las {time} con la etiqueta “{label}”

at {time} with the label “{label}” on weekdays
de: werktags um {time} mit der Bezeichnung „{label}“
fr: en semaine à {time} avec le nom “{label}”
es: entre semana a las {time} con la etiqueta “{label}”

Switch the alarm {alarms}.
de: Schalte den Wecker {alarms}.
fr: Parmi les alarmes, {alarms}.
es: De las alarmas, {alarms}.

Switch the alarms {alarms}.
de: Schalte die Wecker {alarms}.
fr: Parmi les alarmes, {alarms}.
es: De las alarmas, {alarms}.

“{label}” on
de: „{label}“ ein
fr: active “{label}”
es: activa “{label}”

“{label}” off
de: „{label}“ aus
fr: désactive “{label}”
es: desactiva “{label}”

Switch all alarms off.
de: Schalte alle Wecker aus.
fr: Désactive toutes les alarmes.
es: Desactiva todas las alarmas.

Switch all alarms on.
de: Schalte alle Wecker ein.
fr: Active toutes les alarmes.
es: Activa todas las alarmas.

Let the alarm “{label}” ring at {time}.
de: Lass den Wecker „{label}“ um {time} klingeln.
fr: Fais sonner l’alarme “{label}” à {time}.
es: Haz que la alarma “{label}” suene a las {time}.

Let the alarm “{label}” ring {minutes} minutes later than now.
de: Lass den Wecker „{label}“ {minutes} Minuten später klingeln als bisher.
fr: Fais sonner l’alarme “{label}” {minutes} minutes plus tard qu’actuellement.
es: Haz que la alarma “{label}” suene {minutes} minutos más tarde que ahora.

Let the alarm “{label}” ring {minutes} minutes earlier than now.
de: Lass den Wecker „{label}“ {minutes} Minuten früher klingeln als bisher.
fr: Fais sonner l’alarme “{label}” {minutes} minutes plus tôt qu’actuellement.
es: Haz que la alarma “{label}” suene {minutes} minutos antes que ahora.

Delete the alarm “{label}”.
de: Lösche den Wecker „{label}“.
fr: Supprime l’alarme “{label}”.
es: Elimina la alarma “{label}”.

Delete every alarm that is switched on.
de: Lösche jeden Wecker, der eingeschaltet ist.
fr: Supprime toutes les alarmes qui sont actives.
es: Elimina todas las alarmas que están activas.

Delete every alarm that is switched off.
de: Lösche jeden Wecker, der ausgeschaltet ist.
fr: Supprime toutes les alarmes qui sont inactives.
es: Elimina todas las alarmas que están inactivas.

Delete every alarm that rings before {time}.
de: Lösche jeden Wecker, der vor {time} klingelt.
fr: Supprime toutes les alarmes qui sonnent avant {time}.
es: Elimina todas las alarmas que suenan antes de las {time}.

Start a timer of 1 minute.
de: Starte einen Timer von 1 Minute.
fr: Démarre un minuteur de 1 minute.
es: Inicia un temporizador de 1 minuto.

Start a timer of {minutes} minutes.
de: Starte einen Timer von {minutes} Minuten.
fr: Démarre un minuteur de {minutes} minutes.
es: Inicia un temporizador de {minutes} minutos.

Start a timer of 1 minute and {seconds} seconds.
de: Starte einen Timer von 1 Minute und {seconds} Sekunden.
fr: Démarre un minuteur de 1 minute et {seconds} secondes.
es: Inicia un temporizador de 1 minuto y {seconds} segundos.

Start a timer of {minutes} minutes and {seconds} seconds.
de: Starte einen Timer von {minutes} Minuten und {seconds} Sekunden.
fr: Démarre un minuteur de {minutes} minutes et {seconds} secondes.
es: Inicia un temporizador de {minutes} minutos y {seconds} segundos.

Start the stopwatch in the app {app}, take 1 lap, then stop it.
de: Starte die Stoppuhr in der App {app}, zeichne 1 Runde auf und halte sie dann an.
fr: Démarre le chronomètre dans l’application {app}, enregistre 1 tour, puis arrête-le.
es: Inicia el cronómetro en la aplicación {app}, marca 1 vuelta y después detenlo.

Start the stopwatch in the app {app}, take {count} laps, then stop it.
de: Starte die Stoppuhr in der App {app}, zeichne {count} Runden auf und halte sie dann an.
fr: Démarre le chronomètre dans l’application {app}, enregistre {count} tours, puis arrête-le.
es: Inicia el cronómetro en la aplicación {app}, marca {count} vueltas y después detenlo.

When does the alarm “{label}” ring? Answer as 07:30.
de: Wann klingelt der Wecker „{label}“? Antworte in der Form 07:30.
fr: À quelle heure sonne l’alarme “{label}” ? Réponds sous la forme 07:30.
es: ¿A qué hora suena la alarma “{label}”? Responde en la forma 07:30.

Which alarm that is switched on rings first after {time}? Answer with its label.
de: Welcher eingeschaltete Wecker klingelt als erster nach {time}? Antworte mit seiner Bezeichnung.
fr: Quelle alarme active sonne la première après {time} ? Réponds par son nom.
es: ¿Qué alarma activa suena la primera después de las {time}? Responde con su etiqueta.

Look it up in the app {app}.
de: Sieh in der App {app} nach.
fr: Regarde dans l’application {app}.
es: Míralo en la aplicación {app}.
""")
