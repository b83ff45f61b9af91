"""Settings from the environment: typed, documented, and with every problem reported at once."""

from parley.settings.errors import ConfigurationError, SettingsError
from parley.settings.fields import SettingLine, describe, setting
from parley.settings.reader import read
from parley.settings.secret import Secret

__all__ = [
    "ConfigurationError",
    "Secret",
    "SettingLine",
    "SettingsError",
    "describe",
    "read",
    "setting",
]
