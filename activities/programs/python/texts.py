"""`string`, `textwrap`, `urllib.parse`, `io`, `uuid` and `contextlib` for scripts."""

STRING = """
class __string:
    ascii_lowercase = 'abcdefghijklmnopqrstuvwxyz'
    ascii_uppercase = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
    ascii_letters = ascii_lowercase + ascii_uppercase
    digits = '0123456789'
    hexdigits = digits + 'abcdefABCDEF'
    octdigits = '01234567'
    punctuation = '!"#$%&\\'()*+,-./:;<=>?@[\\\\]^_`{|}~'
    whitespace = ' \\t\\n\\r\\x0b\\x0c'
    printable = digits + ascii_letters + punctuation + whitespace
    def capwords(s, sep=None):
        return (' ' if sep is None else sep).join([each.capitalize() for each in s.split(sep)])
"""
TEXTWRAP = r"""
import re as __re
class __textwrap:
    __words = __re.compile('([\t\n\x0b\x0c\r ]+|(?<=[\\w!"\'&.,?])-{2,}(?=\\w)|[^\t\n\x0b\x0c\r ]+?(?:-(?:(?<='
        '[^\\d\\W]{2}-)|(?<=[^\\d\\W]-[\\w!"\'&.,?]-))(?=[^\\d\\W]-?[^\\d\\W])|(?=[\t\n\x0b\x0c\r ]|\\Z)|'
        '(?<=[\\w!"\'&.,?])(?=-{2,}\\w)))')
    def dedent(text):
        text = __re.sub('(?m)^[ \t]+$', '', text)
        lines = [line for line in text.split('\n') if line]
        margin = None
        for line in lines:
            indent = line[:len(line) - len(line.lstrip(' \t'))]
            if margin is None:
                margin = indent
            while not indent.startswith(margin):
                margin = margin[:-1]
        return '\n'.join([line[len(margin):] if line else '' for line in text.split('\n')]) if margin else text
    def indent(text, prefix, predicate=None):
        asked = predicate or (lambda line: line.strip())
        return ''.join([prefix + line if asked(line) else line for line in text.splitlines(True)])
    def shorten(text, width, *, placeholder=' [...]', break_long_words=True):
        text = ' '.join(text.strip().split())
        return '\n'.join(__textwrap.wrap(text, width, max_lines=1, placeholder=placeholder,
            break_long_words=break_long_words))
    def fill(text, width=70, **options):
        return '\n'.join(__textwrap.wrap(text, width, **options))
    def wrap(text, width=70, *, initial_indent='', subsequent_indent='', max_lines=None, placeholder=' [...]',
            break_long_words=True, break_on_hyphens=True):
        for white in '\t\n\x0b\x0c\r':
            text = (text.expandtabs() if white == '\t' else text).replace(white, ' ')
        words = __textwrap.__words if break_on_hyphens else __re.compile('([\t\n\x0b\x0c\r ]+)')
        chunks = [chunk for chunk in words.split(text) if chunk]
        if width <= 0:
            raise ValueError(f'invalid width {width!r} (must be > 0)')
        first = subsequent_indent if max_lines is not None and max_lines > 1 else initial_indent
        if max_lines is not None and len(first) + len(placeholder.lstrip()) > width:
            raise ValueError('placeholder too large for max width')
        lines = []
        chunks.reverse()
        while chunks:
            line, size = [], 0
            indent = subsequent_indent if lines else initial_indent
            room = width - len(indent)
            if chunks[-1].strip() == '' and lines:
                chunks.pop()
            while chunks and size + len(chunks[-1]) <= room:
                size += len(chunks[-1])
                line.append(chunks.pop())
            if chunks and len(chunks[-1]) > room:
                space, chunk = 1 if room < 1 else room - size, chunks[-1]
                if break_long_words:
                    end = space
                    hyphen = chunk.rfind('-', 0, space) if break_on_hyphens else -1
                    if len(chunk) > space and hyphen > 0 and any([c != '-' for c in chunk[:hyphen]]):
                        end = hyphen + 1
                    line.append(chunk[:end])
                    chunks[-1] = chunk[end:]
                elif not line:
                    line.append(chunks.pop())
                size = sum(map(len, line))
            if line and line[-1].strip() == '':
                size -= len(line.pop())
            if not line:
                continue
            is_last = not chunks or (len(chunks) == 1 and not chunks[0].strip())
            if max_lines is None or len(lines) + 1 < max_lines or (is_last and size <= room):
                lines.append(indent + ''.join(line))
                continue
            while line:
                if line[-1].strip() and size + len(placeholder) <= room:
                    lines.append(indent + ''.join(line) + placeholder)
                    break
                size -= len(line.pop())
            else:
                before = lines[-1].rstrip() if lines else None
                if before is not None and len(before) + len(placeholder) <= width:
                    lines[-1] = before + placeholder
                else:
                    lines.append(indent + placeholder.lstrip())
            break
        return lines
"""
URLLIB = r"""
class __Url:
    def __init__(self, parts, names):
        self.__parts, self.__names = parts, names
        for name, part in zip(names, parts):
            setattr(self, name, part)
        user, at, host = self.netloc.rpartition('@')
        self.username = user.partition(':')[0] if at else None
        self.password = user.partition(':')[2] if at and ':' in user else None
        head, bracket, rest = host.partition('[')
        if bracket:
            name, _, port = rest.partition(']')
            port = port.partition(':')[2]
        else:
            name, _, port = host.partition(':')
        name, percent, zone = name.partition('%')
        self.hostname = (name.lower() + percent + zone) or None
        if port and not (port.isdigit() and port.isascii()):
            raise ValueError(f'Port could not be cast to integer value as {port!r}')
        if port and int(port) > 65535:
            raise ValueError('Port out of range 0-65535')
        self.port = int(port) if port else None
    def __iter__(self):
        return iter(self.__parts)
    def __getitem__(self, place):
        return self.__parts[place]
    def __eq__(self, other):
        return tuple(self) == tuple(other)
    def __hash__(self):
        return hash(tuple(self))
    def __repr__(self):
        kind = 'ParseResult' if len(self.__parts) == 6 else 'SplitResult'
        return f"{kind}({', '.join([f'{name}={part!r}' for name, part in zip(self.__names, self.__parts)])})"
    def _asdict(self):
        return dict(zip(self.__names, self.__parts))
    def _replace(self, **changes):
        unknown = [name for name in changes if name not in self.__names]
        if unknown:
            raise ValueError(f'Got unexpected field names: {unknown!r}')
        return __Url(tuple({**self._asdict(), **changes}.values()), self.__names)
    def geturl(self):
        return __urllib_parse.urlunparse(self) if len(self.__parts) == 6 else __urllib_parse.urlunsplit(self)
class __urllib_parse:
    __plain = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~'
    __paths = ('', 'ftp', 'http', 'gopher', 'nntp', 'imap', 'wais', 'file', 'https', 'shttp', 'mms', 'prospero', 'rtsp',
        'rtsps', 'rtspu', 'sftp', 'svn', 'svn+ssh', 'ws', 'wss')
    __hosts = __paths + ('telnet', 'snews', 'rsync', 'nfs', 'git', 'git+ssh')
    __params = ('', 'ftp', 'hdl', 'prospero', 'http', 'imap', 'https', 'shttp', 'rtsp', 'rtsps', 'rtspu', 'sip', 'sips',
        'mms', 'sftp', 'tel')
    def quote(string, safe='/'):
        text = string if isinstance(string, bytes) else string.encode('utf-8')
        kept = __urllib_parse.__plain + safe
        return ''.join([chr(byte) if byte < 128 and chr(byte) in kept else '%%%02X' % byte for byte in text])
    def quote_plus(string, safe=''):
        return __urllib_parse.quote(string, safe + ' ').replace(' ', '+')
    def unquote(string):
        parts = string.split('%')
        out, waiting = [parts[0]], ''
        for part in parts[1:]:
            code = part[:2]
            if len(code) == 2 and all([each in '0123456789abcdefABCDEF' for each in code]):
                waiting += code
                rest = part[2:]
            else:
                rest = '%' + part
            if rest:
                out.append(bytes.fromhex(waiting).decode('utf-8', 'replace') + rest)
                waiting = ''
        return ''.join(out) + bytes.fromhex(waiting).decode('utf-8', 'replace')
    def unquote_plus(string):
        return __urllib_parse.unquote(string.replace('+', ' '))
    def urlencode(query, doseq=False):
        quoted = lambda each: __urllib_parse.quote_plus(each if isinstance(each, (str, bytes)) else str(each))
        found = []
        for name, value in list(query.items() if isinstance(query, dict) else query):
            is_several = doseq and isinstance(value, (list, tuple, set, dict))
            found += [quoted(name) + '=' + quoted(each) for each in (value if is_several else [value])]
        return '&'.join(found)
    def parse_qsl(qs, keep_blank_values=False):
        found = []
        for pair in qs.split('&') if qs else []:
            name, equals, value = pair.partition('=')
            if pair and (value or keep_blank_values):
                found.append((__urllib_parse.unquote_plus(name), __urllib_parse.unquote_plus(value)))
        return found
    def parse_qs(qs, keep_blank_values=False):
        found = {}
        for name, value in __urllib_parse.parse_qsl(qs, keep_blank_values):
            found.setdefault(name, []).append(value)
        return found
    def __split(url, scheme):
        url = url.lstrip(''.join([chr(number) for number in range(33)]))
        for bad in '\t\r\n':
            url, scheme = url.replace(bad, ''), scheme.replace(bad, '')
        place = url.find(':')
        if place > 0 and url[0].isascii() and url[0].isalpha():
            if all([each.isascii() and (each.isalnum() or each in '+-.') for each in url[:place]]):
                scheme, url = url[:place].lower(), url[place + 1:]
        netloc = ''
        if url[:2] == '//':
            end = min([place for place in [url.find(each, 2) for each in '/?#'] if place >= 0], default=len(url))
            netloc, url = url[2:end], url[end:]
            if ('[' in netloc) != (']' in netloc):
                raise ValueError('Invalid IPv6 URL')
        url, _, fragment = url.partition('#')
        url, _, query = url.partition('?')
        return scheme, netloc, url, query, fragment
    def urlsplit(url, scheme=''):
        return __Url(__urllib_parse.__split(url, scheme), ('scheme', 'netloc', 'path', 'query', 'fragment'))
    def urlparse(url, scheme=''):
        scheme, netloc, path, query, fragment = __urllib_parse.__split(url, scheme)
        params = ''
        if scheme in __urllib_parse.__params and ';' in path:
            place = path.find(';', path.rfind('/') if '/' in path else 0)
            path, params = (path, '') if place < 0 else (path[:place], path[place + 1:])
        names = ('scheme', 'netloc', 'path', 'params', 'query', 'fragment')
        return __Url((scheme, netloc, path, params, query, fragment), names)
    def urlunsplit(components):
        scheme, netloc, url, query, fragment = components
        if netloc or (scheme and scheme in __urllib_parse.__hosts and url[:2] != '//'):
            url = '//' + (netloc or '') + ('/' + url if url and url[:1] != '/' else url)
        url = scheme + ':' + url if scheme else url
        url = url + '?' + query if query else url
        return url + '#' + fragment if fragment else url
    def urlunparse(components):
        scheme, netloc, url, params, query, fragment = components
        url = f'{url};{params}' if params else url
        return __urllib_parse.urlunsplit((scheme, netloc, url, query, fragment))
    def urljoin(base, url):
        if not base or not url:
            return base or url
        bscheme, bnetloc, bpath, bparams, bquery, bfragment = __urllib_parse.urlparse(base)
        scheme, netloc, path, params, query, fragment = __urllib_parse.urlparse(url, bscheme)
        if scheme != bscheme or scheme not in __urllib_parse.__paths:
            return url
        if scheme in __urllib_parse.__hosts:
            if netloc:
                return __urllib_parse.urlunparse((scheme, netloc, path, params, query, fragment))
            netloc = bnetloc
        if not path and not params:
            return __urllib_parse.urlunparse((scheme, netloc, bpath, bparams, query or bquery, fragment))
        parts = bpath.split('/')
        if parts[-1] != '':
            parts.pop()
        segments = path.split('/')
        if path[:1] != '/':
            segments = parts + segments
            if len(segments) > 1:
                segments = segments[:1] + [each for each in segments[1:-1] if each] + segments[-1:]
        found = []
        for segment in segments:
            if segment == '..':
                found = found[:-1]
            elif segment != '.':
                found.append(segment)
        if segments[-1] in ('.', '..'):
            found.append('')
        return __urllib_parse.urlunparse((scheme, netloc, '/'.join(found) or '/', params, query, fragment))
class __urllib:
    parse = __urllib_parse
"""
IO = r"""
class __StringIO:
    def __init__(self, initial_value=''):
        self.__text = initial_value
        self.__place = 0
    def __enter__(self):
        return self
    def __exit__(self, *_):
        return False
    def __iter__(self):
        return iter(self.readlines())
    def close(self):
        self.__text = ''
    def getvalue(self):
        return self.__text
    def read(self, size=-1):
        end = len(self.__text) if size is None or size < 0 else self.__place + size
        found = self.__text[self.__place:end]
        self.__place = min(end, len(self.__text))
        return found
    def readline(self):
        end = self.__text.find('\n', self.__place)
        return self.read(end + 1 - self.__place if end >= 0 else -1)
    def readlines(self):
        rest = self.read().split('\n')
        return [line + '\n' for line in rest[:-1]] + ([rest[-1]] if rest[-1] else [])
    def seek(self, place):
        self.__place = place
        return place
    def tell(self):
        return self.__place
    def write(self, text):
        end = self.__place + len(text)
        gap = ' ' * 0 if self.__place <= len(self.__text) else '\0' * (self.__place - len(self.__text))
        self.__text = self.__text[:self.__place] + gap + text + self.__text[end:]
        self.__place = end
        return len(text)
    def writelines(self, lines):
        for line in lines:
            self.write(line)
class __io:
    StringIO = __StringIO
"""
UUID = r"""
import hashlib as __hashlib
__int = int
__uuids = {}
class __UUID:
    def __init__(self, hex=None, *, int=None, version=None):
        if int is not None:
            hex = '%032x' % int
        hex = hex.replace('urn:', '').replace('uuid:', '').strip('{}').replace('-', '').lower()
        if len(hex) != 32 or not all([each in '0123456789abcdef' for each in hex]):
            raise ValueError('badly formed hexadecimal UUID string')
        if version is not None:
            hex = hex[:12] + str(version) + hex[13:16] + '89ab'['0123456789abcdef'.index(hex[16]) % 4] + hex[17:]
        self.hex = hex
        self.int = __int(hex, 16)
        self.version = __int(hex[12], 16) if hex[16] in '89ab' else None
    def __str__(self):
        return '-'.join([self.hex[:8], self.hex[8:12], self.hex[12:16], self.hex[16:20], self.hex[20:]])
    def __repr__(self):
        return f"UUID('{self}')"
    def __eq__(self, other):
        return type(other) is __UUID and self.hex == other.hex
    def __hash__(self):
        return hash(self.hex)
class __uuid:
    UUID = __UUID
    NAMESPACE_DNS = __UUID('6ba7b810-9dad-11d1-80b4-00c04fd430c8')
    NAMESPACE_URL = __UUID('6ba7b811-9dad-11d1-80b4-00c04fd430c8')
    def uuid5(namespace, name):
        whole = bytes.fromhex(namespace.hex) + (name if isinstance(name, bytes) else name.encode())
        return __UUID(__hashlib.sha1(whole).hexdigest()[:32], version=5)
    def uuid4():
        me = __me()
        __uuids[me] = number = __uuids.get(me, 0) + 1
        run = [name for since, name in __of_run if since <= __time()][-1]
        digest = __hashlib.sha256(f'{__seed} {run} {me} {number}'.encode()).hexdigest()
        return __UUID(digest[:32], version=4)
"""
CONTEXTLIB = """
class __suppress:
    def __init__(self, *kinds):
        self.__kinds = kinds
    def __enter__(self):
        return None
    def __exit__(self, kind, error, trace):
        return kind is not None and isinstance(error, self.__kinds)
class __nullcontext:
    def __init__(self, enter_result=None):
        self.enter_result = enter_result
    def __enter__(self):
        return self.enter_result
    def __exit__(self, *_):
        return False
class __contextlib:
    nullcontext = __nullcontext
    suppress = __suppress
"""
