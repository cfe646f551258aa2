"""Dates, zones, ISO weeks, strptime and ranges of days."""
import calendar
from datetime import UTC, date, datetime, timedelta, timezone


async def main():
    berlin = timezone(timedelta(hours=2), "CEST")
    moment = datetime(2026, 6, 30, 23, 30, tzinfo=berlin)
    days = [date(2024, 2, 27) + timedelta(days=number) for number in range(4)]
    parsed = datetime.strptime("03 Mar 2026 14:05 +0100", "%d %b %Y %H:%M %z")
    return [
        moment.astimezone(UTC).isoformat(),
        moment.tzname(),
        [day.isoformat() for day in days],
        parsed.isoformat(),
        parsed.utctimetuple().tm_hour,
        date(2026, 1, 1).isocalendar()[:],
        calendar.monthrange(2028, 2)[1],
        str(moment - parsed),
        f"{moment:%A, %d.%m.%y}",
        datetime.fromisoformat("2026-01-31T09:00:00Z").tzinfo == UTC,
        (datetime.max - datetime.min).days,
    ]
