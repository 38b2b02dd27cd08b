"""table.py FILE: medians and ratios of the lines that bench/run collects: `ROUND SERVER ROW [command] key=value …`."""
import sys
from collections import defaultdict
from statistics import median

# row -> (title, columns, ratios). A ratio is (key, better) with better "up" (ours / other, larger is better) or "down".
SEND = ["msg_per_s", "p50_us", "p99_us", "cpu_us_per_msg", "anon_mib"]
ROWS = {
    "start": ("start, empty store", ["start_ms"], ["start_ms"]),
    "idle": ("idle", ["idle_cpu_pct", "anon_mib"], ["idle_cpu_pct", "anon_mib"]),
    "send": ("send 1 KiB, 4 conns x 64 in flight", SEND, ["msg_per_s", "p99_us", "cpu_us_per_msg"]),
    "one": ("one send at a time, 1 KiB", SEND, ["p50_us", "p99_us", "cpu_us_per_msg"]),
    "batch": ("send batches 32 x 128 B", SEND, ["msg_per_s", "p99_us", "cpu_us_per_msg"]),
    "pull": ("pull backlog, 1 KiB, 8 queues, 32 a pull", ["msg_per_s", "cpu_us_per_msg", "anon_mib"], ["msg_per_s", "cpu_us_per_msg"]),
    "e2e": ("end to end, 2000 msg/s", ["e2e_p50_us", "e2e_p99_us", "cpu_us_per_msg", "anon_mib"], ["e2e_p50_us", "e2e_p99_us", "cpu_us_per_msg"]),
    "park": ("1000 connections parked", ["idle_cpu_pct", "anon_mib"], ["idle_cpu_pct", "anon_mib"]),
}
COLUMNS = ["msg/s", "p50 us", "p99 us", "CPU us/msg", "anon MiB", "CPU %", "ms"]
OF = {"msg_per_s": 0, "p50_us": 1, "e2e_p50_us": 1, "p99_us": 2, "e2e_p99_us": 2, "cpu_us_per_msg": 3, "anon_mib": 4, "idle_cpu_pct": 5, "start_ms": 6}
SHORT = {"msg_per_s": "msg/s", "p50_us": "p50", "e2e_p50_us": "p50", "p99_us": "p99", "e2e_p99_us": "p99", "cpu_us_per_msg": "CPU",
         "anon_mib": "anon", "idle_cpu_pct": "CPU", "start_ms": "time"}

figures = defaultdict(list)   # (row, server, key) -> values
faults = defaultdict(int)     # (row, server) -> errors and failed rounds
lost = []
for line in open(sys.argv[1]):
    round_, server, row, *words = line.split()
    facts = dict(w.split("=", 1) for w in words if "=" in w)
    if round_ == "warm":
        continue
    faults[row, server] += int(facts.get("errors", 0)) + int(facts.get("failed", 0))
    if row == "e2e" and "received" in facts and int(facts["received"]) != int(facts["sent"]):
        lost.append(f"{server} e2e round {round_}: sent {facts['sent']}, received {facts['received']}")
    for key, value in facts.items():
        try:
            figures[row, server, key].append(float(value))
        except ValueError:
            pass


def text(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def ratio(row, key, other):
    ours, theirs = figures.get((row, "comet", key)), figures.get((row, other, key))
    if not ours or not theirs:
        return None
    a, b = median(ours), median(theirs)
    return f"{SHORT[key]} {a / b:.2f}" if b else None


print(f"\n{'':42} {'':7}" + "".join(f"{c:>12}" for c in COLUMNS))
for row, (title, keys, ratios) in ROWS.items():
    shown = title
    for server in ["floor", "apache", "comet"]:
        cells = [""] * len(COLUMNS)
        for key in keys:
            values = figures.get((row, server, key))
            if values:
                cells[OF[key]] = text(median(values))
        if any(cells):
            fault = f"  {faults[row, server]} ERRORS" if faults[row, server] else ""
            print(f"{shown:42} {server:7}" + "".join(f"{c:>12}" for c in cells) + fault)
            shown = ""
        elif faults[row, server]:
            print(f"{shown:42} {server:7}  FAILED")
            shown = ""
    for other in ["apache", "floor"]:
        found = [r for r in (ratio(row, key, other) for key in ratios) if r]
        if found:
            print(f"{'':42} comet / {other + ':':8} " + ", ".join(found))
if not any(server == "comet" for _, server, _ in figures):
    print("comet was not measured")
for line in lost:
    print("LOST", line)
sys.exit(1 if lost or any(faults.values()) else 0)
