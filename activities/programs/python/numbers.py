"""`statistics`, `operator` and `heapq` for scripts: as CPython has them, for whole numbers and floats."""

STATISTICS = """
import math as __math
import decimal as __decimal
class __statistics:
    def __pairs(data):
        pairs = []
        for each in data:
            if not isinstance(each, (int, float)):
                raise TypeError(f"can't convert type '{type(each).__name__}' to numerator/denominator")
            if isinstance(each, float):
                pairs.append(__decimal.Decimal(each).as_integer_ratio() if __math.isfinite(each) else (each, 0))
            else:
                pairs.append((int(each), 1))
        return pairs
    def __sum(pairs):
        whole, parts = 1, 0
        for number, part in pairs:
            if part == 0:
                return sum([n for n, p in pairs if p == 0]), 0
            if whole % part:
                common = __math.gcd(whole, part)
                parts, whole = parts * (part // common), whole * (part // common)
            parts += number * (whole // part)
        return parts, whole
    def __given(number, part, data):
        if part == 0:
            return number
        if number % part == 0 and not any([isinstance(each, float) for each in data]):
            return number // part
        return number / part
    def __needed(data, least, what):
        data = list(data)
        if len(data) < least:
            raise ValueError(what)
        return data
    def __squares(data):
        pairs = __statistics.__pairs(data)
        n, d = __statistics.__sum(pairs)
        if d == 0:
            return float('nan'), 0
        n2, d2 = __statistics.__sum([(a * a, b * b) for a, b in pairs])
        return len(data) * n2 * d * d - n * n * d2, d2 * d * d * len(data)
    def __root(n, m):
        if m == 0:
            return n
        common = __math.gcd(n, m)
        n, m = n // common, m // common
        q = (len(bin(n)) - len(bin(m)) - 109) // 2
        if n == 0:
            return 0.0
        if q >= 0:
            m = m << 2 * q
        else:
            n = n << -2 * q
        a = __math.isqrt(n // m)
        a = a | (1 if a * a * m != n else 0)
        return float(a << q) if q >= 0 else a / (1 << -q)
    def mean(data):
        data = __statistics.__needed(data, 1, 'mean requires at least one data point')
        n, d = __statistics.__sum(__statistics.__pairs(data))
        return __statistics.__given(n / len(data) if d == 0 else n, d * len(data), data)
    def fmean(data):
        data = __statistics.__needed(data, 1, 'fmean requires at least one data point')
        return __math.fsum(data) / len(data)
    def geometric_mean(data):
        data = list(data)
        if not data or min(data) <= 0:
            raise ValueError('geometric mean requires a non-empty dataset containing positive numbers')
        return __math.exp(__statistics.fmean([__math.log(each) for each in data]))
    def median(data):
        data = sorted(__statistics.__needed(data, 1, 'no median for empty data'))
        half = len(data) // 2
        return data[half] if len(data) % 2 else (data[half - 1] + data[half]) / 2
    def median_low(data):
        data = sorted(__statistics.__needed(data, 1, 'no median for empty data'))
        return data[(len(data) - 1) // 2]
    def median_high(data):
        data = sorted(__statistics.__needed(data, 1, 'no median for empty data'))
        return data[len(data) // 2]
    def mode(data):
        return __statistics.multimode(__statistics.__needed(data, 1, 'no mode for empty data'))[0]
    def multimode(data):
        counts = {}
        for each in data:
            counts[each] = counts.get(each, 0) + 1
        most = max(counts.values(), default=0)
        return [each for each, count in counts.items() if count == most]
    def pvariance(data):
        data = __statistics.__needed(data, 1, 'pvariance requires at least one data point')
        n, d = __statistics.__squares(data)
        return __statistics.__given(n, d * len(data), data)
    def variance(data):
        data = __statistics.__needed(data, 2, 'variance requires at least two data points')
        n, d = __statistics.__squares(data)
        return __statistics.__given(n, d * (len(data) - 1), data)
    def pstdev(data):
        data = __statistics.__needed(data, 1, 'pstdev requires at least one data point')
        n, d = __statistics.__squares(data)
        return __statistics.__root(n, d * len(data))
    def stdev(data):
        data = __statistics.__needed(data, 2, 'stdev requires at least two data points')
        n, d = __statistics.__squares(data)
        return __statistics.__root(n, d * (len(data) - 1))
    def quantiles(data, *, n=4, method='exclusive'):
        if n < 1:
            raise ValueError('n must be at least 1')
        data = sorted(__statistics.__needed(data, 2, 'must have at least two data points'))
        if method not in ('inclusive', 'exclusive'):
            raise ValueError(f'Unknown method: {method!r}')
        m = len(data) - 1 if method == 'inclusive' else len(data) + 1
        found = []
        for i in range(1, n):
            if method == 'inclusive':
                j, delta = divmod(i * m, n)
                found.append((data[j] * (n - delta) + data[j + 1] * delta) / n)
            else:
                j = min(max(i * m // n, 1), len(data) - 1)
                delta = i * m - j * n
                found.append((data[j - 1] * (n - delta) + data[j] * delta) / n)
        return found
"""
OPERATOR = """
class __operator:
    def abs(a): return -a if a < 0 else a
    def add(a, b): return a + b
    def and_(a, b): return a & b
    def attrgetter(*names):
        def one(value, name):
            for part in name.split('.'):
                value = getattr(value, part)
            return value
        return lambda value: one(value, names[0]) if len(names) == 1 else tuple([one(value, name) for name in names])
    def concat(a, b): return a + b
    def contains(a, b): return b in a
    def countOf(a, b): return len([each for each in a if each == b])
    def eq(a, b): return a == b
    def floordiv(a, b): return a // b
    def ge(a, b): return a >= b
    def getitem(a, b): return a[b]
    def gt(a, b): return a > b
    def invert(a): return ~a
    def is_(a, b): return a is b
    def is_not(a, b): return a is not b
    def itemgetter(*keys):
        return lambda value: value[keys[0]] if len(keys) == 1 else tuple([value[key] for key in keys])
    def le(a, b): return a <= b
    def lshift(a, b): return a << b
    def lt(a, b): return a < b
    def mod(a, b): return a % b
    def mul(a, b): return a * b
    def ne(a, b): return a != b
    def neg(a): return -a
    def not_(a): return not a
    def or_(a, b): return a | b
    def pos(a): return +a
    def pow(a, b): return a ** b
    def rshift(a, b): return a >> b
    def setitem(a, b, c): a[b] = c
    def sub(a, b): return a - b
    def truediv(a, b): return a / b
    def truth(a): return True if a else False
    def xor(a, b): return a ^ b
"""
HEAPQ = """
class __heapq:
    def __down(heap, start, place):
        new = heap[place]
        while place > start:
            above = (place - 1) >> 1
            if not new < heap[above]:
                break
            heap[place] = heap[above]
            place = above
        heap[place] = new
    def __up(heap, place):
        end, start, new = len(heap), place, heap[place]
        child = 2 * place + 1
        while child < end:
            if child + 1 < end and not heap[child] < heap[child + 1]:
                child += 1
            heap[place] = heap[child]
            place, child = child, 2 * child + 1
        heap[place] = new
        __heapq.__down(heap, start, place)
    def heappush(heap, item):
        heap.append(item)
        __heapq.__down(heap, 0, len(heap) - 1)
    def heappop(heap):
        last = heap.pop()
        if not heap:
            return last
        first = heap[0]
        heap[0] = last
        __heapq.__up(heap, 0)
        return first
    def heapreplace(heap, item):
        first = heap[0]
        heap[0] = item
        __heapq.__up(heap, 0)
        return first
    def heappushpop(heap, item):
        return __heapq.heapreplace(heap, item) if heap and heap[0] < item else item
    def heapify(heap):
        for place in reversed(range(len(heap) // 2)):
            __heapq.__up(heap, place)
    def nsmallest(n, iterable, key=None):
        return sorted(iterable, key=key)[:max(n, 0)]
    def nlargest(n, iterable, key=None):
        return sorted(iterable, key=key, reverse=True)[:max(n, 0)]
    def merge(*iterables, key=None, reverse=False):
        rows, merged = [list(each) for each in iterables], []
        places = [0 for _ in rows]
        while True:
            best, least = -1, None
            for number, row in enumerate(rows):
                if places[number] < len(row):
                    known = row[places[number]] if key is None else key(row[places[number]])
                    if best < 0 or (least < known if reverse else known < least):
                        best, least = number, known
            if best < 0:
                return iter(merged)
            merged.append(rows[best][places[best]])
            places[best] += 1
"""
