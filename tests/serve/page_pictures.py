"""Makes the pictures of docs/page.md: the page in a headless Chromium, with the real model behind it.

    python tests/serve/page_pictures.py --coppice build/release/apps/coppice --model FILE.gguf [--out docs/pictures]
"""

import argparse
import base64
import pathlib
import sys

import browser

DRAFTERS = f"both=lookup | ngram({browser.NGRAM})"
QUESTION = "Write a Python function that says whether a number is prime. Then explain it in a list."
SETTINGS = {"max_tokens": 260, "policy": "auto"}


def choose_pass(page):
    """The pass in which most was taken and something was not: the one that shows most."""
    page.find("#tree").send_keys("\ue011")  # Home
    best, best_at = -1, 1
    count = int(page.find("#pass").get_attribute("max"))
    for at in range(1, count + 1):
        taken, left = len(page.all("#tree .node.taken")), len(page.all("#tree .node.left"))
        if (worth := min(taken, 7) + min(left, 6)) > best:
            best, best_at = worth, at
        page.find("#tree").send_keys("\ue014")  # right
    page.script("const slider = document.getElementById('pass'); slider.value = arguments[0]; slider.dispatchEvent(new Event('input'))", best_at)


def take(driver, path):
    driver.execute_script("document.activeElement.blur()")
    shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "webp", "quality": 88})
    path.write_bytes(base64.b64decode(shot["data"]))
    print(path, path.stat().st_size, "bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--coppice", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--out", type=pathlib.Path, default=browser.ROOT / "docs" / "pictures")
    options = parser.parse_args()
    if lacks := browser.missing():
        sys.exit(f"page_pictures: this machine lacks {lacks}")
    server = browser.Server(options.coppice, options.model, "--drafters", DRAFTERS)
    driver = browser.chromium(1240, 880)
    try:
        page = browser.Page(driver, server.address)
        page.prefer(prefers_color_scheme="light")
        page.open(SETTINGS)
        page.say(QUESTION)
        choose_pass(page)
        take(driver, options.out / "page-light.webp")
        page.prefer(prefers_color_scheme="dark")
        page.find("#new").click()
        page.say(QUESTION, compare=True)
        choose_pass(page)
        take(driver, options.out / "page-dark.webp")
    finally:
        driver.quit()
        server.close()


if __name__ == "__main__":
    main()
