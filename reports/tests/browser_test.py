"""report.html in a headless Chromium, driven over WebDriver.

Usage: browser_test.py CHROMIUM CHROMEDRIVER GOOD.html BAD.html WAIVED.html [SHOTS]
GOOD passes; BAD fails and is full of hostile text; WAIVED has two failures, of which one is waived.
SHOTS: a folder for screenshots.
"""

import base64
import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

CHROMIUM, DRIVER, GOOD, BAD, WAIVED = sys.argv[1:6]
SHOTS = sys.argv[6] if len(sys.argv) > 6 else None


class Browser:
    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.driver = subprocess.Popen([DRIVER, f"--port={self.port}", "--silent"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.session = None
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                   "--disable-background-networking", "--disable-component-update", "--disable-sync",
                   "--disable-dev-shm-usage", f"--user-data-dir={folder}"]
        wanted = {"browserName": "chrome", "goog:chromeOptions": {"binary": CHROMIUM, "args": options},
                  "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        for _ in range(600):
            try:
                self.call("GET", "/status")
                break
            except OSError:
                time.sleep(0.05)
        made = self.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.session = made["sessionId"]

    def call(self, method, path, body=None):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method,
                                         data=None if body is None else json.dumps(body).encode())
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=120) as answer:
            return json.load(answer)["value"]

    def command(self, method, path, body=None):
        return self.call(method, f"/session/{self.session}{path}", body)

    def script(self, text):
        return self.command("POST", "/execute/sync", {"script": text, "args": []})

    def devtools(self, name, **parameters):
        return self.command("POST", "/goog/cdp/execute", {"cmd": name, "params": parameters})

    def open(self, path):
        self.command("POST", "/url", {"url": pathlib.Path(path).resolve().as_uri()})

    def view(self, width, height, dark=False, media=""):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height,
                      deviceScaleFactor=1, mobile=width < 600)
        self.devtools("Emulation.setEmulatedMedia", media=media, features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def shot(self, name):
        if SHOTS:
            image = base64.b64decode(self.command("GET", "/screenshot"))
            pathlib.Path(SHOTS, name + ".png").write_bytes(image)

    def close(self):
        try:
            if self.session:
                self.command("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait(30)


# Texts whose contrast with what lies behind them is below 4.5, by their colours as computed.
LOW_CONTRAST = """
const part = c => { c /= 255; return c <= 0.03928 ? c / 12.92 : Math.pow((c + 0.055) / 1.055, 2.4); };
const light = c => 0.2126 * part(c[0]) + 0.7152 * part(c[1]) + 0.0722 * part(c[2]);
const colour = text => text.match(/[\\d.]+/g).map(Number);
const low = [];
for (const one of document.querySelectorAll('body *')) {
  if (![...one.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || !one.getClientRects().length) continue;
  if (one.closest('script, noscript, svg')) continue;
  let behind = one;
  while (behind && (colour(getComputedStyle(behind).backgroundColor)[3] ?? 1) === 0) behind = behind.parentElement;
  const a = light(colour(getComputedStyle(one).color));
  const b = light(behind ? colour(getComputedStyle(behind).backgroundColor) : [255, 255, 255]);
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < 4.5) low.push(one.tagName + ' ' + one.className + ' ' + ratio.toFixed(2));
}
return [...new Set(low)];
"""

# What a reader without eyes or mouse would miss.
UNLABELLED = """
const faults = [];
if (!document.documentElement.lang) faults.push('no language');
for (const t of document.querySelectorAll('table')) {
  if (!t.caption) faults.push('table without caption');
  for (const h of t.querySelectorAll('th')) if (!h.scope) faults.push('th without scope: ' + h.textContent);
}
for (const s of document.querySelectorAll('svg')) if (!s.getAttribute('aria-label')) faults.push('unlabelled svg');
for (const i of document.querySelectorAll('select, input')) if (!i.labels.length) faults.push('no label: ' + i.id);
for (const s of document.querySelectorAll('.scroll')) {
  if (s.tabIndex !== 0 || !s.getAttribute('aria-label')) faults.push('a scrolling part without keyboard');
}
const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
if (new Set(ids).size !== ids.length) faults.push('an id twice');
for (const a of document.querySelectorAll('a[href]')) {
  if (!document.getElementById(a.getAttribute('href').slice(1))) faults.push('link to nowhere ' + a.href);
}
return faults;
"""

CHOOSE = """
const at = document.getElementById('by-%s');
const option = [...(at.options || [])].find(o => o.text === %s);
at.value = at.options ? option.value : %s;
at.dispatchEvent(new Event(at.options ? 'change' : 'input'));
"""


def equal(found, wanted, what):
    if found != wanted:
        raise SystemExit(f"{what}: {found!r}, not {wanted!r}")


def choose(browser, field, value):
    browser.script(CHOOSE % (field, json.dumps(value), json.dumps(value)))


def count(browser):
    return browser.script("return document.getElementById('count').textContent")


def check_page(browser, path, name):
    browser.command("POST", "/se/log", {"type": "performance"})  # what came before
    browser.open(path)
    for width, height, dark in ((1280, 900, False), (1280, 900, True), (360, 740, False), (360, 740, True)):
        browser.view(width, height, dark)
        browser.shot(f"{name}_{width}_{'dark' if dark else 'light'}")
        wide = browser.script("return document.documentElement.scrollWidth")
        if wide > width:
            raise SystemExit(f"{path}: {wide} pixels wide in a view of {width}")
        browser.script("for (const d of document.querySelectorAll('details')) d.open = true")
        wide = browser.script("return document.documentElement.scrollWidth")
        if wide > width:
            raise SystemExit(f"{path}: opened, {wide} pixels wide in a view of {width}")
        equal(browser.script(LOW_CONTRAST), [], f"{path}: low contrast, dark {dark}")
        if width < 600 or not dark:
            browser.script("(document.querySelector('.picture') || document.querySelector('#accuracy') || "
                           "document.body).scrollIntoView()")
            browser.shot(f"{name}_{width}_{'dark' if dark else 'light'}_open")
        browser.script("for (const d of document.querySelectorAll('details')) d.open = false; scrollTo(0, 0)")
    browser.view(1280, 900)
    equal(browser.script(UNLABELLED), [], f"{path}: accessibility")
    # Tab reaches the skip link first, then sections, then filters.
    reached = []
    for _ in range(40):
        browser.command("POST", "/actions", {"actions": [{"type": "key", "id": "k", "actions": [
            {"type": "keyDown", "value": "\ue004"}, {"type": "keyUp", "value": "\ue004"}]}]})
        reached.append(browser.script("return document.activeElement.id || document.activeElement.className"))
        if reached[-1] == "by-text":
            break
    equal(reached[0], "skip", f"{path}: the first stop of the keyboard")
    equal(reached[-1], "by-text", f"{path}: keyboard stops {reached}")
    browser.view(800, 1000, media="print")
    browser.script("dispatchEvent(new Event('beforeprint'))")
    equal(browser.script("return document.querySelectorAll('details:not([open])').length"), 0,
          f"{path}: folded in print")
    equal(browser.script("return getComputedStyle(document.getElementById('find')).display"), "none",
          f"{path}: filters in print")
    browser.script("dispatchEvent(new Event('afterprint'))")
    browser.view(1280, 900)
    said = browser.command("POST", "/se/log", {"type": "browser"})
    equal([s["message"] for s in said], [], f"{path}: console")
    sent = set()
    for entry in browser.command("POST", "/se/log", {"type": "performance"}):
        event = json.loads(entry["message"])["message"]
        # The browser's own start page may still be loading.
        if event["method"] == "Network.requestWillBeSent":
            if not event["params"]["documentURL"].startswith("chrome:"):
                sent.add(event["params"]["request"]["url"])
    equal(sent, {pathlib.Path(path).resolve().as_uri()}, f"{path}: requests")


def check_filters(browser):
    total = int(re.match(r"[\d,]+ of ([\d,]+) cases match", count(browser)).group(1).replace(",", ""))
    rows = "return document.querySelectorAll('#cases tbody tr').length"
    equal(browser.script(rows), min(total, 100), "rows at first")
    choose(browser, "outcome", "failed")
    equal(count(browser), f"1 of {total} cases match", "failed ones")
    equal(browser.script(rows), 1, "rows of failed ones")
    shown = "return [...document.querySelectorAll('.failure')].filter(d => !d.hidden).length"
    equal(browser.script(shown), 1, "failures told")
    choose(browser, "provenance", "captured on hardware")
    equal(count(browser), f"0 of {total} cases match", "failed and captured")
    browser.script("document.getElementById('reset').click()")
    equal(browser.script(shown), 3, "failures told again")
    choose(browser, "text", "SIGNAL 11")
    equal(count(browser), f"1 of {total} cases match", "by text")
    choose(browser, "text", "")
    choose(browser, "kernel", "mxfp4_q_quant")
    choose(browser, "flag", "TieToEven")
    equal(count(browser), f"2 of {total} cases match", "kernel and flag")
    browser.script("document.getElementById('reset').click()")
    browser.script("document.querySelector('.matrix td.bad').click()")
    equal(count(browser), f"3 of {total} cases match", "by a cell of the matrix")
    browser.script("document.getElementById('reset').click()")


def check_waived(browser):
    text = "return document.querySelector('%s').textContent"
    equal("(1 waived)" in browser.script(text % ".totals, dl"), True, "waived failures are counted")
    notices = browser.script("return [...document.querySelectorAll('.notice')].map(n => n.textContent)")
    equal([n.startswith("Note: waived: ") for n in notices].count(True), 1, "notices of waivers")
    for outcome, waived in (("failed", False), ("failed, waived", True)):
        choose(browser, "outcome", outcome)
        equal(count(browser), "1 of 3 cases match", outcome)
        row = browser.script(text % "#cases tbody tr")
        equal("waived" in row, waived, f"the row of {outcome}: {row}")
        browser.script("document.getElementById('reset').click()")


def check_hostile(browser):
    equal(browser.script("return window.pwned === undefined"), True, "foreign text was run")
    equal(browser.script("return document.querySelectorAll('img, iframe, b, em').length"), 0,
          "foreign text became elements")
    equal(browser.script("return document.title.includes('<img src=x onerror=pwned=1>')"), True, "title")
    equal(browser.script("return document.querySelector('.subject strong').textContent"),
          "mine <&\"'><img src=x onerror=pwned=1></script><script>pwned=1</script>", "candidate")
    browser.script("document.querySelector('.command button').click()")


with tempfile.TemporaryDirectory() as scratch:
    browser = Browser(scratch + "/profile")
    try:
        check_page(browser, GOOD, "good")
        check_page(browser, BAD, "bad")
        check_filters(browser)
        check_hostile(browser)
        check_page(browser, WAIVED, "waived")
        check_waived(browser)
    finally:
        browser.close()
