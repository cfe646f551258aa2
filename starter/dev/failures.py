"""Why there is no local stack. Every text is for the person who asked for one."""


class LocalStackFailed(Exception):
    """The local stack, or a part of it, cannot be started or stopped; the text says why and where its log is."""


class WrongSettings(LocalStackFailed):
    """The workers refuse a setting, so another start changes nothing; the text names the setting."""
