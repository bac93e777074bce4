"""How fast the command line and the host are there, how fast the host is gone, and what it weighs meanwhile.

``python -m benchmarks.startup``
"""

import sys
import time

from benchmarks.measure import child_cpu, process_cpu, report, resident_mb
from benchmarks.stage import TOKEN, host, telegram_server


def main() -> None:
    bare = child_cpu([sys.executable, "-c", "pass"])
    asked = child_cpu([sys.executable, "-m", "bot.cli", "--help"])
    report("pumice --help, CPU over python -c pass", f"{asked / bare:.1f}x", "at most 6x")
    with telegram_server() as telegram:
        configuration = ["[channels.telegram]", f'token = "{TOKEN}"', f'api_url = "{telegram.url}"']
        with host(configuration) as (process, _):
            telegram.until_polled()
            report("pumice run to the first poll, CPU", f"{process_cpu(process.pid):.2f} s", "at most 0.9 s")
            time.sleep(1.0)
            report("resident, Telegram, web and SQLite idle", f"{resident_mb(process.pid):.0f} MB", "at most 90 MB")
            began = time.monotonic()
            process.terminate()
            process.wait(20)
            report("stop when idle", f"{time.monotonic() - began:.2f} s", "at most 1 s")


if __name__ == "__main__":
    main()
