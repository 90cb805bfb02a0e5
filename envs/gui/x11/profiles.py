"""Profiles of the large apps: nothing is asked at their first start, and nothing moves by itself."""

from __future__ import annotations

from collections.abc import Mapping

_OFFICE_SETTINGS = {
    "Common/Misc": {"FirstRun": "false", "ShowTipOfTheDay": "false", "CrashReport": "false"},
    "Common/Save/Document": {"AutoSave": "false", "CreateBackup": "false", "WarnAlienFormat": "false"},
    "Common/Security/Scripting": {"MacroSecurityLevel": "3"},
    "Setup/Office": {
        "FirstStartWizardCompleted": "true",
        "ooSetupInstCompleted": "true",
        "LastCompatibilityCheckID": "",
    },
    "Setup/Product": {
        "LastTimeDonateShown": "4102444800",
        "LastTimeGetInvolvedShown": "4102444800",
        "ooSetupLastVersion": "7.4",
    },
    "Linguistic/General": {"UILocale": "en-US", "DefaultLocale": "en-US"},
}
_ITEM = (
    '<item oor:path="/org.openoffice.{}"><prop oor:name="{}" oor:op="fuse"><value>{}</value></prop></item>\n'
)
OFFICE: Mapping[str, str] = {
    ".config/libreoffice/4/user/registrymodifications.xcu": (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<oor:items xmlns:oor="http://openoffice.org/2001/registry" '
        'xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">\n'
        + "".join(
            _ITEM.format(path if path.startswith("Setup") else f"Office.{path}", name, value)
            for path, properties in _OFFICE_SETTINGS.items()
            for name, value in properties.items()
        )
        + "</oor:items>\n"
    )
}
"""LibreOffice: no welcome, no tip of the day, no autosave, no question about foreign formats, no macros."""
