// Appended to a report by test_browser.py: uses the first animation as a person would, and writes
// what it saw into the page.
(async () => {
  const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
  const until = async (done) => {
    for (let i = 0; i < 1000 && !done(); i++) await sleep(16);
  };
  const figure = document.querySelector("figure.animation"), player = figure.animation;
  const part = (name) => figure.querySelector(`[data-part="${name}"]`);
  const stage = part("stage"), canvas = part("canvas"), seen = {};
  const report = () => {
    const pre = Object.assign(document.createElement("pre"), { id: "probe" });
    pre.textContent = JSON.stringify({ ...seen, problems: window.problems });
    document.body.append(pre);
  };
  const camera = () => player.camera.position.toArray();
  const distance = () => player.controls.getDistance();
  const key = (name, more = {}) =>
    stage.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true, ...more }));
  const pointer = (type, x, y) => canvas.dispatchEvent(new PointerEvent(type, {
    pointerId: 1, pointerType: "mouse", button: 0, buttons: 1, clientX: x, clientY: y,
    pageX: x, pageY: y, bubbles: true,
  }));
  const wheel = () => canvas.dispatchEvent(
    new WheelEvent("wheel", { deltaY: 300, bubbles: true, cancelable: true }));

  seen.pwned = window.pwned ?? 0;
  seen.images = document.images.length;
  seen.wide = document.documentElement.scrollWidth > innerWidth;
  seen.notice = getComputedStyle(part("notice")).display === "none" ? "" : part("notice").textContent;
  seen.headings = document.querySelectorAll("h1, h2").length;
  seen.calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  if (!player) return report();

  await (seen.calm ? sleep(700) : until(() => player.time > 0));
  seen.start = { time: player.time, playing: player.playing };
  player.play(false);
  player.show(0);

  part("play").click();
  seen.pressed = part("play").getAttribute("aria-label");
  await until(() => player.time > 0.3);
  seen.played = { time: player.time, slider: Number(part("time").value), clock: part("clock").textContent };
  key(" ");
  seen.paused = !player.playing && part("play").getAttribute("aria-label") === "Play";

  part("time").value = 0.5;
  part("time").dispatchEvent(new Event("input", { bubbles: true }));
  seen.slid = player.time;
  key("ArrowRight");
  seen.stepped = player.time - seen.slid;
  key("End");
  seen.end = player.time;

  player.draw();
  const copy = Object.assign(document.createElement("canvas"), { width: 160, height: 120 });
  copy.getContext("2d").drawImage(canvas, 0, 0, 160, 120);
  const pixels = new Uint32Array(copy.getContext("2d").getImageData(0, 0, 160, 120).data.buffer);
  seen.colors = new Set(pixels).size;

  const home = camera();
  canvas.setPointerCapture = canvas.releasePointerCapture = () => {}; // no real pointer is down
  pointer("pointerdown", 100, 100);
  for (let i = 1; i <= 10; i++) pointer("pointermove", 100 + 8 * i, 100 + 2 * i);
  pointer("pointerup", 180, 120);
  await sleep(300);
  seen.turned = Math.hypot(...camera().map((x, i) => x - home[i])) / distance();
  part("reset").click();
  await sleep(300);
  seen.reset = Math.hypot(...camera().map((x, i) => x - home[i])) / distance();
  key("ArrowLeft", { shiftKey: true });
  seen.keyed = Math.hypot(...camera().map((x, i) => x - home[i])) / distance();

  const before = distance();
  wheel();
  await sleep(100);
  seen.scrolled = distance() / before;
  stage.focus();
  wheel();
  await until(() => distance() > 1.01 * before);
  seen.zoomed = distance() / before;

  const box = figure.querySelector("[data-track='1']");
  box?.click();
  seen.hidden = box ? !player.moving[1].group.visible : null;

  part("time").value = 0;
  part("speed").value = "100";
  part("speed").dispatchEvent(new Event("change"));
  player.show(0);
  part("play").click();
  await until(() => !player.playing);
  seen.stopped = { time: player.time, playing: player.playing };

  seen.requests = performance.getEntriesByType("resource").map((entry) => entry.name);
  report();
})().catch((error) => window.problems.push(`probe: ${error.stack}`));
