"""No cookies: what a server sets in the call of one run would go out with the calls of others."""

from http.cookiejar import CookieJar, DefaultCookiePolicy


def no_cookies() -> CookieJar:
    """Return a jar that takes no cookie and sends none."""
    return CookieJar(DefaultCookiePolicy(allowed_domains=[]))
