"""Profiles of the large apps: nothing is asked at their first start, and nothing moves by itself."""

from __future__ import annotations

import json
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
