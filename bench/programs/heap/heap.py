"""A heap of a chosen size, made of what programs hold: records with a number, a name, some tags and a text."""


def resident_megabytes() -> float:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096 / 1e6


def build(megabytes: int) -> list:
    """Records enough to let this process grow by so many megabytes."""
    goal, records = resident_megabytes() + megabytes, []
    while resident_megabytes() < goal:
        for number in range(len(records), len(records) + 1000):
            tags = [f"tag {number % 17}", f"tag {number % 19}"]
            records.append({"id": number, "name": f"record {number}", "tags": tags, "text": f"{number:<500}"})
    return records
