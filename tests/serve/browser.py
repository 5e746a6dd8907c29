"""A server of the real model and a headless Chromium that looks at its page, for page_test.py and page_pictures.py."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
NGRAM = ROOT / "models" / "smollm2-135m-instruct.ngram"
CHROMIUM = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")
PATIENCE = 60  # seconds for anything on a busy machine


def missing():
    """What the tests need and this machine lacks, or ""."""
    if not CHROMIUM or not DRIVER:
        return "Debian's chromium and chromium-driver"
    try:
        import axe_selenium_python  # noqa: F401
        import selenium  # noqa: F401
    except ImportError as error:
        return f"the Python package {error.name}"
    return ""


def wait(until, what, patience=PATIENCE):
    """What `until` gives once that is true."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        found = until()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"waited {patience} s in vain for {what}")


class Server:
    """`coppice serve` on a free port of this machine, in a folder of its own."""

    def __init__(self, coppice, model, *options):
        self.temporary = tempfile.TemporaryDirectory()
        self.errors = open(pathlib.Path(self.temporary.name) / "stderr", "w+")
        cache = {"COPPICE_CACHE": self.temporary.name, "HOME": self.temporary.name}
        self.process = subprocess.Popen([coppice, "serve", "-m", model, "--port", "0", *options], env={**os.environ, **cache},
                                        stdin=subprocess.DEVNULL, stdout=self.errors, stderr=self.errors)
        self.address = wait(self.find_address, "the server's address")

    def find_address(self):
        said = (pathlib.Path(self.temporary.name) / "stderr").read_text()
        if self.process.poll() is not None:
            raise AssertionError(f"coppice serve ended with {self.process.returncode}: {said}")
        found = re.search(r"http://[\w.:\[\]]+:\d+", said)
        return found and found.group()

    def ask(self, path, body=None):
        request = urllib.request.Request(self.address + path, headers={"Content-Type": "application/json"},
                                         data=None if body is None else json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            return json.loads(response.read())

    def close(self):
        self.process.terminate()
        self.process.wait(PATIENCE)
        self.errors.close()
        self.temporary.cleanup()


def chromium(width=1400, height=900):
    """A WebDriver of a headless Chromium with an empty profile."""
    from selenium import webdriver
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars",
                     "--disable-extensions", "--no-first-run", "--disable-background-networking", f"--window-size={width},{height}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=DRIVER))
    driver.set_page_load_timeout(PATIENCE)
    return driver


class Page:
    """The page as a person uses it, by a WebDriver."""

    def __init__(self, driver, address):
        self.driver, self.address = driver, address

    def open(self, settings=None, forget=True):
        """Loads the page, with an empty storage unless `forget` is false, and waits for the list of models. All is guessed that
        may be: the policy "auto" would leave it on a busy machine."""
        self.driver.get(self.address + "/")
        if forget:
            kept = {"coppice.settings": json.dumps({"max_tokens": 48, "policy": "fixed", **(settings or {})})}
            self.script("localStorage.clear(); sessionStorage.clear();"
                        "for (const [name, text] of Object.entries(arguments[0])) localStorage.setItem(name, text)", kept)
            self.driver.get(self.address + "/")
        wait(lambda: self.script("return document.getElementById('model').value"), "the list of models")

    def script(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def find(self, selector):
        from selenium.webdriver.common.by import By
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        from selenium.webdriver.common.by import By
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector):
        """Of the last element that fits, shown or not."""
        return self.script("return [...document.querySelectorAll(arguments[0])].at(-1)?.textContent ?? null", selector)

    def press(self, *keys):
        from selenium.webdriver.common.action_chains import ActionChains
        ActionChains(self.driver).send_keys(*keys).perform()

    def say(self, text, compare=False):
        """Sends a message and waits for the end of the answer; its article."""
        self.find("#message").send_keys(text)
        self.find("#compare" if compare else "#send").click()
        return self.answered()

    def answered(self):
        wait(lambda: self.all("article.answer:last-child .actions"), "the end of the answer")
        return self.all("article.answer")[-1]

    def prefer(self, **features):
        """What the system prefers, as prefers_color_scheme="dark"."""
        wanted = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": wanted})
