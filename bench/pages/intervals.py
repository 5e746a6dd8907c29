"""What may be said of a sample: bootstrap intervals, paired t-test, rank correlation."""

import math
import random
import statistics

RESAMPLES = 1000
SEED = 5


class Interval:
    def __init__(self, value, low, high):
        self.value, self.low, self.high = value, low, high

    def text(self, digits=2):
        return f"{self.value:.{digits}f} ({self.low:.{digits}f} to {self.high:.{digits}f})"


def bootstrap(rows, statistic, resamples=RESAMPLES):
    """The statistic, and the middle 95% of what it is for as many prompts drawn from these with replacement."""
    generator = random.Random(SEED)
    draws = sorted(statistic(generator.choices(rows, k=len(rows))) for _ in range(resamples))
    at = lambda share: draws[min(len(draws) - 1, int(share * len(draws)))]
    return Interval(statistic(rows), at(0.025), at(0.975))


def paired_t(differences):
    """-> (t, p, n) of Student's paired t-test, two-sided: is the mean of the differences 0? (0, 1, n) where that cannot be said."""
    n = len(differences)
    if n < 2:
        return 0.0, 1.0, n
    deviation = statistics.stdev(differences)
    if deviation == 0:
        return (0.0, 1.0, n) if differences[0] == 0 else (math.copysign(math.inf, differences[0]), 0.0, n)
    t = statistics.fmean(differences) / (deviation / math.sqrt(n))
    return t, incomplete_beta((n - 1) / 2, 0.5, (n - 1) / (n - 1 + t * t)), n


def incomplete_beta(a, b, x):
    """The regularised incomplete beta function, by Lentz's continued fraction (Numerical Recipes, 6.4); Student's tail at nu degrees is
    I(nu / 2, 1 / 2, nu / (nu + t^2))."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    small = 1e-300
    c, d = 1.0, 1 / max(1 - (a + b) * x / (a + 1), small)
    fraction = d
    for m in range(1, 500):
        for step in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)), -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
            d = 1 + step * d
            d = 1 / (d if abs(d) > small else small)
            c = 1 + step / c
            c = c if abs(c) > small else small
            fraction *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return front * fraction


def percentile(values, share):
    """Interpolated between the two nearest."""
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def rank_correlation(xs, ys):
    """Spearman's; ties share their mean rank. 0 where one of them is constant."""
    def ranks(values):
        order = sorted(range(len(values)), key=values.__getitem__)
        out = [0.0] * len(values)
        i = 0
        while i < len(order):
            j = i
            while j + 1 < len(order) and values[order[j + 1]] == values[order[i]]:
                j += 1
            for k in order[i:j + 1]:
                out[k] = (i + j) / 2
            i = j + 1
        return out

    if len(set(xs)) < 2 or len(set(ys)) < 2:
        return 0.0
    return statistics.correlation(ranks(xs), ranks(ys))
