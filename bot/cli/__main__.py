"""``python -m bot.cli``."""

from bot.cli.main import main

if __name__ == "__main__":
    main()
