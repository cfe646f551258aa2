"""Statistics and maths."""
import cmath
import math
import statistics as st


async def main():
    data = [2.5, 3.25, 5.5, 11.25, 11.75]
    return [
        [st.mean(data), st.median(data), st.pstdev(data), st.variance(data)],
        [st.mode("aabbb"), st.multimode("aabb"), st.quantiles(data, n=4)],
        st.linear_regression([1, 2, 3], [2.1, 3.9, 6.2]).slope,
        [math.gcd(12, 18), math.comb(5, 2), math.isqrt(50), math.hypot(3, 4), math.fsum([0.1] * 10)],
        [math.floor(-1.5), math.trunc(-1.5), -7 // 2, -7 % 3, divmod(7, -2), 7 % -3],
        [math.isclose(0.1 + 0.2, 0.3), math.prod([1, 2, 3]), math.log2(8), math.degrees(math.pi)],
        abs(cmath.sqrt(-4)),
        [int("7f", 16), hex(255), bin(5), f"{255:#x} {5:08b} {1e6:.1e}"],
        2**100,
        pow(3, -1, 7),
    ]
