"""Opens report.html in Chromium, as a reader would.

    python3 tests/pages/check_page.py DIRECTORY [SHOTS]

Each folder of DIRECTORY has a report.html; the folders `pass` and `fail` must be there. A server on the loopback hands
them out and notes every request. With SHOTS, screenshots are left there.
"""
import base64
import functools
import http.server
import json
import pathlib
import shutil
import sys
import tempfile
import threading

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

WIDTHS = (360, 1440)
SCHEMES = ("light", "dark")

# Returns the texts whose contrast with what is behind them is below 4.5, the least that WCAG 2 asks for.
PALE = """
const parts = (color) => color.match(/[\\d.]+/g).map(Number);
const light = (color) => { const [r, g, b] = parts(color).slice(0, 3).map((v) => v / 255)
    .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const behind = (element) => { for (let e = element; e; e = e.parentElement) { const color = getComputedStyle(e).backgroundColor;
    const of = parts(color); if (of.length < 4 || of[3] > 0) return color; } return 'rgb(255, 255, 255)'; };
const pale = [];
for (const e of document.querySelectorAll('p, td, th, li, dt, dd, a, h1, h2, h3, summary, figcaption, .v, button, svg text')) {
  if (!e.textContent.trim()) continue;
  const style = getComputedStyle(e), ink = e instanceof SVGElement ? style.fill : style.color;
  const [a, b] = [light(ink), light(behind(e))].sort((x, y) => y - x);
  if ((a + 0.05) / (b + 0.05) < 4.5) pale.push(e.tagName + ': ' + e.textContent.slice(0, 40));
}
return pale;
"""
# Returns what sticks out of the page on the right. What scrolls inside its own box does not.
OVERFLOW = """
const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
if (wide <= 0) return [];
return [`${wide} px too wide`, ...[...document.querySelectorAll('body *')].filter((e) => !e.closest('.scroll, pre')
    && (e.getBoundingClientRect().right > document.documentElement.clientWidth + 1 || e.clientWidth && e.scrollWidth > e.clientWidth + 1))
    .slice(0, 5).map((e) => e.outerHTML.slice(0, 120))];
"""
SMALL = """
return [...document.querySelectorAll('svg text')].filter((e) => { const box = e.getBoundingClientRect();
    return box.width > 0 && Math.max(box.width, box.height) > 0 && Math.min(box.width, box.height) < 8
        && e.textContent.trim().length > 1; }).map((e) => e.textContent);
"""


# Returns what is folded away in the cards, what of it is not seen, and then what only a screen has use for.
FOLDED = """
const folded = [...document.querySelectorAll('article details:not([open]) > :not(summary)')];
return [folded.length, folded.filter((e) => !e.checkVisibility()).map((e) => e.outerHTML.slice(0, 80)),
        [...document.querySelectorAll('.screen')].filter((e) => e.checkVisibility()).map((e) => e.outerHTML.slice(0, 80))];
"""


class Site(http.server.SimpleHTTPRequestHandler):
    asked = []

    def do_GET(self):
        Site.asked.append(self.path)
        super().do_GET()

    def log_message(self, *_):
        pass


class Checks:
    def __init__(self, driver, base, shots):
        self.driver, self.base, self.shots, self.wrong = driver, base, shots, []

    def expect(self, true, what):
        if not true:
            self.wrong.append(what)

    def script(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def open(self, name, width=1440, scheme="light"):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": scheme}]})
        self.driver.get(f"{self.base}/{name}/report.html")

    def shoot(self, name):
        if not self.shots:
            return
        height = self.script("return document.documentElement.scrollHeight")
        width = self.script("return innerWidth")
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": min(height, 12000), "deviceScaleFactor": 1, "mobile": width < 600})
        self.driver.save_screenshot(f"{self.shots}/{name}.png")

    def looks(self, name):
        """Nothing sticks out, is too pale or too small, in any width and scheme."""
        grounds = set()
        for width in WIDTHS:
            for scheme in SCHEMES:
                self.open(name, width, scheme)
                grounds.add((scheme, self.script("return getComputedStyle(document.body).backgroundColor")))
                self.shoot(f"{name}-{width}-{scheme}")
                # What is folded must fit, too.
                self.script("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
                where = f"{name} at {width} px, {scheme}"
                for what, script in (("sticks out", OVERFLOW), ("is too pale", PALE), ("is too small", SMALL)):
                    found = self.script(script)
                    self.expect(not found, f"{where}: {what}: {found[:5]}")
        self.expect(len(grounds) == 2, f"{name}: light and dark have one background: {grounds}")
        untitled = self.script("return [...document.querySelectorAll('svg[role=img]')].filter((e) => !e.querySelector(':scope > title')"
                               "?.textContent || !e.querySelector(':scope > desc')?.textContent).length")
        self.expect(untitled == 0, f"{name}: {untitled} pictures have no text alternative")
        self.expect(self.script("return document.images.length") == 0, f"{name}: text of the report became an image")

    def rows(self):
        return self.script("return [...document.querySelectorAll('#files tbody tr')].filter((e) => e.offsetParent)"
                           ".map((e) => e.cells[0].textContent)")

    def works(self, name):
        """Filter, order and copy buttons do what they say."""
        self.open(name)
        self.script("document.querySelectorAll('#files details').forEach((e) => { e.open = true; })")
        names = self.rows()
        count = self.script("return document.querySelectorAll('#files tbody tr').length")
        self.expect(len(names) == count > 1, f"{name}: {len(names)} of {count} rows are seen")
        field = self.driver.find_element(By.ID, "filter")
        word = names[-1].split("/")[-1]
        field.send_keys(word.upper())
        texts = self.script("return [...document.querySelectorAll('#files tbody tr')].map((e) => e.textContent)")
        fitting = [n for n, text in zip(names, texts) if word.lower() in text.lower()]
        self.expect(self.rows() == fitting, f"{name}: '{word}' leaves {self.rows()}, not {fitting}")
        told = self.driver.find_element(By.ID, "count").text
        self.expect(told == f"{len(fitting)} of {count} shown", f"{name}: the filter says '{told}'")
        field.send_keys(" no-such-word")
        self.expect(self.rows() == [], f"{name}: a word that nothing has leaves {self.rows()}")
        field.clear()
        field.send_keys(" ")
        self.script("document.querySelectorAll('#files details').forEach((e) => { e.open = true; })")
        order = Select(self.driver.find_element(By.ID, "order"))
        order.select_by_value("time")
        seconds = self.script("return [...document.querySelectorAll('#files > details')].map((e) => Number(e.dataset.s))")
        self.expect(seconds == sorted(seconds, reverse=True), f"{name}: slowest first gives {seconds}")
        order.select_by_value("report")
        self.expect(self.rows() == names, f"{name}: the order of the report is lost")

    def copies(self, name):
        self.open(name)
        self.driver.execute_cdp_cmd("Browser.grantPermissions", {
            "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
        buttons = self.driver.find_elements(By.CSS_SELECTOR, "#problems button.copy")
        self.expect(buttons and all(b.is_displayed() for b in buttons), f"{name}: no copy button")
        if not buttons:
            return
        line = self.script("return arguments[0].previousElementSibling.textContent", buttons[0])
        self.expect(line.startswith("reprise "), f"{name}: the button stands beside '{line}'")
        buttons[0].click()
        copied = self.driver.execute_async_script(
            "const done = arguments[0]; setTimeout(() => navigator.clipboard.readText().then(done, (e) => done(String(e))), 100);")
        self.expect(copied == line, f"{name}: copied '{copied}', not '{line}'")

    def begins(self, name):
        """The first screen has the verdict, what was counted, and each of the worst causes with its code."""
        self.open(name, 1280)
        seen = self.script("return [...document.querySelectorAll('h1 .v, header strong, .worst a, .tiles div')]"
                           ".map((e) => [e.textContent, e.getBoundingClientRect().bottom])")
        below = [text for text, bottom in seen if bottom > 800]
        self.expect(len(seen) > 3 and not below, f"{name}: below the first screen are {below}")
        failed = self.script("return document.querySelectorAll('article').length")
        worst = self.script("return [...document.querySelectorAll('.worst a')].map((e) => [e.querySelector('.code').textContent, "
                            "document.querySelector(e.getAttribute('href'))?.querySelector('h3').textContent])")
        self.expect(len(worst) == min(failed, 3), f"{name}: of {failed} causes {len(worst)} stand at the top")
        self.expect(all(card and card.startswith(code) for code, card in worst), f"{name}: links lead elsewhere: {worst}")

    def unscripted(self, name):
        """Verdict, problems and numbers stand there without a script; what needs one does not."""
        self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        self.open(name)
        rows = [e.text for e in self.driver.find_elements(By.CSS_SELECTOR, "main tbody tr") if e.is_displayed()]
        self.expect(any("scenarios" in row for row in rows), f"{name}: without a script there are no numbers: {rows}")
        self.expect(name != "fail" or any("STALE_DERIVED" in row and "[0, 0]" in row for row in rows),
                    f"{name}: without a script no row has code and key: {rows}")
        self.expect(self.driver.find_element(By.CSS_SELECTOR, "h1 .v").is_displayed(), f"{name}: there is no verdict")
        shown = self.driver.find_elements(By.CSS_SELECTOR, ".screen, article, button")
        self.expect(not shown, f"{name}: without a script there are {len(shown)} things that need one")
        self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})

    def prints(self, name):
        """On paper are the causes, unfolded, and the totals, but nothing that only a screen has use for."""
        self.open(name)
        folded, closed, tools = self.script(FOLDED)
        self.expect(len(closed) == folded and tools, f"{name}: on a screen {folded} parts are folded, "
                    f"{len(closed)} of them closed, with {len(tools)} tools")
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        folded, closed, tools = self.script(FOLDED)
        self.expect(not closed, f"{name}: on paper {len(closed)} of {folded} parts are closed: {closed[:5]}")
        self.expect(not tools, f"{name}: on paper there is what only a screen has use for: {tools[:5]}")
        gone = self.script("return [...document.querySelectorAll('h1, .tiles div, article')]"
                           ".filter((e) => !e.checkVisibility()).length")
        self.expect(gone == 0, f"{name}: on paper {gone} causes or totals are gone")
        try:
            pdf = base64.b64decode(self.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
        except WebDriverException as error:
            pdf = str(error).encode()
        self.expect(pdf.startswith(b"%PDF-") and b"%%EOF" in pdf[-16:], f"{name}: it is not printed: {pdf[:80]}")
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})

    def quiet(self, names):
        """The pages were asked for, and nothing else."""
        asked = {path for path in Site.asked} - {f"/{name}/report.html" for name in names}
        self.expect(not asked, f"the server was asked for {sorted(asked)}")
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        urls = {e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"}
        self.expect(any(url.endswith("/report.html") for url in urls), "the log of requests is empty")
        # "chrome:" is the empty tab that Chromium begins with, which comes out of the program itself.
        others = {url for url in urls if not url.startswith((f"{self.base}/", "data:", "chrome:"))}
        self.expect(not others, f"requests left the machine: {sorted(others)}")
        severe = [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]
        self.expect(not severe, f"the console says {severe}")


def browser(profile):
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run",
                     "--disable-background-networking", "--disable-component-update", "--disable-sync",
                     f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    return webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)


def main(directory, shots=""):
    names = sorted(path.parent.name for path in pathlib.Path(directory).glob("*/report.html"))
    if not {"pass", "fail"} <= set(names):
        print(f"{directory} has only {names}")
        return 1
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Site, directory=directory))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as profile:
        driver = browser(profile)
        try:
            checks = Checks(driver, f"http://127.0.0.1:{server.server_port}", shots)
            for name in names:
                checks.looks(name)
                checks.begins(name)
                checks.works(name)
                checks.prints(name)
            checks.copies("fail")
            checks.unscripted("pass")
            checks.unscripted("fail")
            checks.quiet(names)
        finally:
            driver.quit()
            server.shutdown()
    for line in checks.wrong:
        print(line)
    print(f"{len(names)} pages, {len(checks.wrong)} wrong")
    return 1 if checks.wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
