"""Profiles of the large apps: nothing is asked at their first start, and nothing moves by itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

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

_BROWSER_SETTINGS: Mapping[str, object] = {
    "browser.aboutwelcome.enabled": False,
    "browser.startup.homepage": "about:blank",
    "browser.startup.homepage_override.mstone": "ignore",
    "browser.startup.page": 0,
    "browser.newtabpage.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.tabs.warnOnClose": False,
    "browser.cache.disk.enable": False,
    "browser.sessionstore.resume_from_crash": False,
    "browser.sessionstore.interval": 3600000,
    "browser.download.dir": "/home/user",
    "browser.download.folderList": 2,
    "browser.download.useDownloadDir": True,
    "browser.download.alwaysOpenPanel": False,
    "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False,
    "browser.safebrowsing.downloads.enabled": False,
    "browser.search.update": False,
    "browser.region.update.enabled": False,
    "browser.urlbar.suggest.quicksuggest.sponsored": False,
    "browser.urlbar.trimURLs": False,
    "browser.uitour.enabled": False,
    "app.update.enabled": False,
    "app.normandy.enabled": False,
    "app.shield.optoutstudies.enabled": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "datareporting.policy.dataSubmissionPolicyBypassNotification": True,
    "datareporting.healthreport.uploadEnabled": False,
    "toolkit.telemetry.enabled": False,
    "toolkit.telemetry.unified": False,
    "toolkit.cosmeticAnimations.enabled": False,
    "ui.prefersReducedMotion": 1,
    "ui.caretBlinkTime": 0,
    "general.smoothScroll": False,
    "widget.gtk.overlay-scrollbars.enabled": False,  # they fade
    "dom.ipc.processCount": 1,
    "dom.ipc.processPrelaunch.enabled": False,
    "fission.autostart": False,
    "extensions.getAddons.cache.enabled": False,
    "extensions.update.enabled": False,
    "extensions.pocket.enabled": False,
    "identity.fxaccounts.enabled": False,
    "media.hardware-video-decoding.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "network.prefetch-next": False,
    "places.database.growthIncrementKiB": 0,
    "signon.rememberSignons": False,
    "widget.use-xdg-desktop-portal.file-picker": 0,
    "gfx.webrender.software": True,
    "layers.acceleration.disabled": True,
}
BROWSER: Mapping[str, str] = {
    ".mozilla/firefox/desktop/user.js": "".join(
        f'user_pref("{name}", {json.dumps(value)});\n' for name, value in _BROWSER_SETTINGS.items()
    )
}
"""Firefox: an empty page first, one content process, no network, no animation, downloads into the home."""

OWNER = "Quinn Oxley <quinn@example.org>"
"""Of the mailbox. Addresses that begin as theirs does are completed while they are typed."""
_MAIL_SETTINGS: Mapping[str, object] = {
    "config_version": 4,
    "work_offline": 1,
    "enable_aspell": 0,
    "mainwin_maximised": 1,
    "show_searchbar": 0,
    "autosave": 0,
    "warn_queued_on_exit": 0,
    "address_search_wildcard": 0,
    # Large enough for two recipients.
    "compose_width": 720,
    "compose_height": 600,
    "compose_notebook_height": 190,
}
_ACCOUNT: Mapping[str, object] = {
    "account_name": "quinn@example.org",
    "is_default": 1,
    "name": "Quinn Oxley",
    "address": "quinn@example.org",
    "protocol": 6,  # it only sends
    "smtp_server": "localhost",
}
_KINDS_OF_FOLDERS = {"inbox": "inbox", "sent": "outbox", "draft": "draft", "queue": "queue", "trash": "trash"}


def folder_list(num_mails: int, folders: Sequence[str]) -> dict[str, bytes]:
    """Claws Mail's list of folders, with so many unread mails in the inbox, and folders beside its own."""
    items = "".join(
        f'<folderitem type="{kind}" name="{name}" path="{name}" sort_key="date" sort_type="ascending" '
        f'threaded="0" total="{count}" unread="{count}"/>\n'
        for name, kind in {**_KINDS_OF_FOLDERS, **dict.fromkeys(folders, "normal")}.items()
        for count in (num_mails if kind == "inbox" else 0,)
    )
    mailbox = f'<folder type="mh" name="Mailbox" path="Mail" collapsed="0">\n{items}</folder>'
    text = f'<folderlist config_version="4">\n{mailbox}\n</folderlist>\n'
    return {".claws-mail/folderlist.xml": f'<?xml version="1.0" encoding="UTF-8"?>\n{text}'.encode()}


def _lines(settings: Mapping[str, object]) -> str:
    return "".join(f"{name}={value}\n" for name, value in settings.items())


MAIL: Mapping[str, str] = {
    ".claws-mail/accountrc": f"[Account: 1]\n{_lines(_ACCOUNT)}",
    ".claws-mail/clawsrc": f"[Common]\n{_lines(_MAIL_SETTINGS)}",
}
"""Claws Mail: an account that is offline, no assistant, no spelling, nothing saved by itself."""
