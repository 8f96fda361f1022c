"""Install pip from the wheel that Python carries, then what is asked for: get-pip.py without a download."""
from __future__ import annotations

import ensurepip
import subprocess
import sys


def main() -> None:
    ensurepip.bootstrap()
    packages = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *packages], check=True)


if __name__ == "__main__":
    main()
