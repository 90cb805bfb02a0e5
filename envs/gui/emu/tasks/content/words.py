"""Names and texts that tasks about files, dates and numbers draw from."""

from __future__ import annotations

FOLDERS = (
    *("Work", "Taxes", "Recipes", "Travel", "Music", "Letters", "Projects", "School", "Garden", "Bills"),
    *("Sports", "Health", "Reports", "Drafts", "Poems", "Archive"),
)
STEMS = (
    *("notes", "ideas", "draft", "todo", "letter", "report", "budget", "plan", "journal", "agenda"),
    *("summary", "invoice", "shopping", "packing", "contract", "minutes", "outline", "guests", "menu"),
    *("schedule", "receipt", "review", "speech", "story"),
)
LINES = (
    "The train leaves at noon.",
    "Call the plumber on Monday.",
    "Bring two umbrellas.",
    "The blue folder is in room 12.",
    "Lunch is at the harbour.",
    "Please water the plants.",
    "The meeting moved to Thursday.",
    "Eggs, flour and butter are missing.",
    "Send the keys back to Nora.",
    "The garden gate needs paint.",
    "Ask Omar about the tickets.",
    "Pay the rent before Friday.",
)
TITLES = (
    *("Dentist", "Team lunch", "Piano lesson", "Haircut", "Yoga", "Book club", "Car service", "Board game"),
    *("Interview", "Chess club", "Doctor", "Choir", "Parents evening", "Swimming", "Budget review"),
    *("Museum tour", "Picnic", "Flat viewing", "Spanish class", "Vet"),
)
