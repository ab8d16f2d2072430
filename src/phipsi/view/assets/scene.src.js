// The 3-D animations of a phipsi report. README.md here says how this becomes scene.js.
//
// Python writes, for each animation, a <figure class="animation"> with its controls, a canvas and a
// JSON text (see animation.py) that holds the solids of the robots and their poses over time; this
// script draws and plays them. Texts reach the page as textContent only, and nothing is fetched.

import {
  BoxGeometry, CapsuleGeometry, Color, CylinderGeometry, DirectionalLight, EdgesGeometry,
  GridHelper, Group, HemisphereLight, KeepStencilOp, LineBasicMaterial, LineSegments, Mesh,
  MeshBasicMaterial, MeshStandardMaterial, NotEqualStencilFunc, PerspectiveCamera, Quaternion,
  ReplaceStencilOp, Scene, SphereGeometry, Spherical, Vector3, WebGLRenderer,
} from "three";
import { OrbitControls } from "three/addons/controls/OrbitControls.js";
import { Line2 } from "three/addons/lines/Line2.js";
import { LineGeometry } from "three/addons/lines/LineGeometry.js";
import { LineMaterial } from "three/addons/lines/LineMaterial.js";

const FIELD_OF_VIEW = 30; // degrees
const VIEW = { azimuth: -0.85, elevation: 0.36 }; // radians, seen from the front right
const TRIAD = ["#d55e00", "#009e73", "#0072b2"]; // x, y, z in colours that colour-blind people tell apart
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const dark = matchMedia("(prefers-color-scheme: dark)");

// ---- data -----------------------------------------------------------------------------------------

/** Base64 of little-endian float32 numbers. */
function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Float32Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(4 * i, true));
}

/** The last k with times[k] <= time, and how far the time is on the way to the next. */
function locate(times, time) {
  let low = 0, high = times.length - 1;
  if (time >= times[high]) return { k: high, s: 0 };
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) low = middle; else high = middle;
  }
  const step = times[high] - times[low];
  return { k: low, s: step > 0 ? Math.max(0, (time - times[low]) / step) : 0 };
}

/** Put an object at [position; quaternion (w, x, y, z)]. */
function place(object, pose, i = 0) {
  object.position.set(pose[i], pose[i + 1], pose[i + 2]);
  object.quaternion.set(pose[i + 4], pose[i + 5], pose[i + 6], pose[i + 3]);
}

// ---- things to see --------------------------------------------------------------------------------

function geometry({ shape, size }) {
  switch (shape) {
    case "capsule": return new CapsuleGeometry(size[0], size[1], 8, 24).rotateX(Math.PI / 2);
    case "cylinder": return new CylinderGeometry(size[0], size[0], size[1], 40).rotateX(Math.PI / 2);
    case "box": return new BoxGeometry(...size);
    default: return new SphereGeometry(1, 32, 20).scale(...size);
  }
}

/** Three axes, x, y and z. */
function triad(length) {
  const rod = new CylinderGeometry(0.05 * length, 0.05 * length, length, 12).translate(0, length / 2, 0);
  const group = new Group();
  TRIAD.forEach((color, i) => {
    const axis = new Mesh(rod, new MeshBasicMaterial({ color }));
    axis.quaternion.setFromUnitVectors(new Vector3(0, 1, 0), new Vector3().setComponent(i, 1));
    group.add(axis);
  });
  return group;
}

/** The solids of one robot; its bodies are groups that `pose` moves. */
class Puppet extends Group {
  constructor(robot, color, ghost) {
    super();
    this.colors = { hinge: color, link: ghost ? color : null, bulk: ghost ? color : null };
    this.ghost = ghost;
    this.paints = {};
    this.edges = new LineBasicMaterial();
    this.bodies = robot.bodies.map(() => new Group());
    for (const body of this.bodies) this.add(body);
    for (const solid of robot.solids) {
      const holder = solid.body < 0 ? this : this.bodies[solid.body];
      for (const material of this.materials(solid.role)) {
        const mesh = new Mesh(geometry(solid), material);
        mesh.renderOrder = material.renderOrder;
        place(mesh, solid.pose);
        holder.add(mesh);
        if (solid.shape === "box" && !ghost) mesh.add(new LineSegments(new EdgesGeometry(mesh.geometry), this.edges));
      }
    }
    if (!ghost) {
      for (const frame of robot.triads) {
        const axes = triad(4 * robot.radius);
        place(axes, frame.pose);
        (frame.body < 0 ? this : this.bodies[frame.body]).add(axes);
      }
    }
  }

  /** A solid robot marks where it is in the stencil, and ghosts are drawn elsewhere only. A ghost is
   * drawn twice: its depth first, then its colour, so that no inner walls show. */
  materials(role) {
    if (!this.paints[role]) {
      const paint = new MeshStandardMaterial({ roughness: 0.55, metalness: 0.05, stencilWrite: true, stencilRef: 1 });
      Object.assign(paint, { stencilZPass: ReplaceStencilOp, renderOrder: 0 });
      this.paints[role] = [paint];
      if (this.ghost) {
        const elsewhere = { stencilFunc: NotEqualStencilFunc, stencilZPass: KeepStencilOp, transparent: true };
        const depth = new MeshBasicMaterial({ colorWrite: false, stencilWrite: true, stencilRef: 1 });
        Object.assign(depth, { ...elsewhere, renderOrder: 1 });
        Object.assign(paint, { ...elsewhere, opacity: 0.35, renderOrder: 2 });
        this.paints[role] = [depth, paint];
      }
    }
    return this.paints[role];
  }

  /** Neutral colours follow the page, light or dark. */
  paint(theme) {
    for (const [role, materials] of Object.entries(this.paints)) {
      materials.at(-1).color.set(this.colors[role] ?? theme[role]);
    }
    this.edges.color = new Color(theme.bulk).multiplyScalar(0.6);
  }

  pose(times, poses, time) {
    const { k, s } = locate(times, time), n = 7 * this.bodies.length, turn = new Quaternion();
    this.bodies.forEach((body, i) => {
      const now = n * k + 7 * i;
      place(body, poses, now);
      if (s > 0) {
        const [x, y, z, qw, qx, qy, qz] = poses.subarray(now + n, now + n + 7);
        body.position.lerp(new Vector3(x, y, z), s);
        body.quaternion.slerp(turn.set(qx, qy, qz, qw), s);
      }
    });
  }
}

/** The path of a frame: faint where it will go, strong where it has been. */
class Path extends Group {
  constructor(points, color, ghost) {
    super();
    this.count = points.length / 3 - 1;
    const line = (linewidth, opacity) => {
      const material = new LineMaterial({ color, linewidth, opacity, transparent: true });
      return new Line2(new LineGeometry().setPositions(points), material);
    };
    this.gone = line(ghost ? 2 : 3.5, ghost ? 0.7 : 1);
    this.add(line(1.5, 0.35), this.gone);
  }

  pose(times, time) {
    const { k, s } = locate(times, time);
    this.gone.geometry.instanceCount = Math.min(this.count, k + (s > 0 ? 1 : 0));
    this.gone.visible = this.gone.geometry.instanceCount > 0;
  }
}

function marker(target, radius) {
  const group = new Group();
  const paint = (opacity) => new MeshStandardMaterial({
    color: target.color, emissive: target.color, emissiveIntensity: 0.35, opacity,
    transparent: opacity < 1, depthWrite: opacity === 1,
  });
  group.add(new Mesh(new SphereGeometry(0.9 * radius, 24, 16), paint(1)));
  group.add(new Mesh(new SphereGeometry(2.6 * radius, 32, 20), paint(0.22)));
  if (target.turned) group.add(triad(5 * radius));
  place(group, target.pose);
  return group;
}

// ---- the player -----------------------------------------------------------------------------------

class Player {
  constructor(figure) {
    this.figure = figure;
    this.data = JSON.parse(figure.querySelector("script[type='application/json']").textContent);
    this.find = (name) => figure.querySelector(`[data-part="${name}"]`);
    this.stage = this.find("stage");
    this.duration = this.data.duration;
    this.time = 0;
    this.speed = Number(this.find("speed").value);
    this.playing = false;
    this.pending = 0;

    const canvas = this.find("canvas");
    this.renderer = new WebGLRenderer({ canvas, antialias: true, alpha: true, stencil: true });
    this.renderer.setPixelRatio(Math.min(devicePixelRatio, 2));
    this.camera = new PerspectiveCamera(FIELD_OF_VIEW);
    this.camera.up.fromArray(this.data.up);
    this.controls = new OrbitControls(this.camera, canvas);
    this.controls.enableDamping = !calm.matches;
    this.controls.enableZoom = false; // until it is clicked, so that the page scrolls over it
    this.controls.addEventListener("change", () => this.redraw());
    canvas.style.touchAction = "pan-y"; // so do fingers

    this.build();
    this.repaint();
    this.listen();
    this.resize();
    this.reset();
    this.show(0);
  }

  build() {
    const { data } = this;
    this.panes = data.panes.map(() => new Scene());
    this.moving = [];
    for (const pane of this.panes) {
      const lamp = (strength, azimuth, elevation) => {
        const light = new DirectionalLight("#ffffff", strength);
        light.position.copy(this.along(azimuth, elevation));
        return light;
      };
      const sky = new HemisphereLight("#ffffff", "#b9c0ca", 1.7);
      sky.position.copy(this.camera.up);
      pane.add(sky, lamp(1.5, 0.7, 0.9), lamp(0.5, -1.1, 0.3));
      for (const target of data.targets) pane.add(marker(target, data.rod));
    }
    for (const track of data.tracks) {
      const times = unpack(track.times), poses = unpack(track.poses), group = new Group();
      const puppet = new Puppet(data.robots[track.robot], track.color, track.ghost);
      const paths = times.length < 2 ? [] : track.paths.map((path) => new Path(unpack(path), track.color, track.ghost));
      group.add(puppet, ...paths);
      this.panes[track.pane].add(group);
      this.moving.push({ group, puppet, paths, times, poses });
    }
    this.labels = data.targets.flatMap((target) => this.panes.map((_, pane) => {
      const label = document.createElement("span");
      label.textContent = target.label;
      this.find("labels").append(label);
      return { label, pane, position: new Vector3(...target.pose) };
    }));
  }

  /** What depends on light or dark. */
  repaint() {
    const style = getComputedStyle(this.figure);
    const color = (name) => style.getPropertyValue(`--${name}`).trim();
    const theme = { link: color("link"), bulk: color("bulk"), ground: color("ground") };
    for (const { puppet } of this.moving) puppet.paint(theme);
    this.grids?.forEach((grid) => grid.removeFromParent());
    const { size, divisions, center } = this.data.floor;
    this.grids = this.panes.map((pane) => {
      const grid = new GridHelper(size, divisions, color("grid"), color("grid"));
      grid.quaternion.setFromUnitVectors(new Vector3(0, 1, 0), this.camera.up);
      grid.position.fromArray(center);
      pane.add(grid);
      return grid;
    });
    this.redraw();
  }

  // ---- time

  play(yes = !this.playing) {
    if (yes && this.time >= this.duration) this.show(0);
    this.playing = yes && this.duration > 0;
    this.last = undefined;
    const button = this.find("play");
    button.setAttribute("aria-label", this.playing ? "Pause" : "Play");
    button.classList.toggle("playing", this.playing);
    this.redraw();
  }

  show(time) {
    this.time = Math.min(Math.max(time, 0), this.duration);
    for (const { puppet, paths, times, poses } of this.moving) {
      puppet.pose(times, poses, this.time);
      for (const path of paths) path.pose(times, this.time);
    }
    const clock = `${(this.data.start + this.time).toFixed(this.data.digits)} s`;
    this.find("time").value = this.time;
    this.find("time").setAttribute("aria-valuetext", clock);
    this.find("clock").textContent = clock;
    this.redraw();
  }

  jump(time) {
    this.play(false);
    this.show(time);
  }

  step(count) {
    this.jump(this.time + count * this.data.step);
  }

  // ---- view

  /** A unit vector at an azimuth from the view's, and an elevation above the horizon. */
  along(azimuth, elevation) {
    const angle = VIEW.azimuth + azimuth, flat = Math.cos(elevation);
    const turn = new Quaternion().setFromUnitVectors(new Vector3(0, 0, 1), this.camera.up);
    return new Vector3(flat * Math.cos(angle), flat * Math.sin(angle), Math.sin(elevation)).applyQuaternion(turn);
  }

  reset() {
    const { center, radius } = this.data, half = (FIELD_OF_VIEW / 2) * Math.PI / 180;
    const narrow = Math.min(1, this.camera.aspect);
    const distance = radius / Math.sin(Math.atan(Math.tan(half) * narrow));
    this.controls.target.fromArray(center);
    this.camera.position.copy(this.along(0, VIEW.elevation)).multiplyScalar(distance).add(this.controls.target);
    Object.assign(this.camera, { near: distance / 100, far: 20 * distance });
    Object.assign(this.controls, { minDistance: distance / 30, maxDistance: 6 * distance });
    this.camera.updateProjectionMatrix();
    this.controls.update();
    this.redraw();
  }

  turn(azimuth, elevation, scale = 1) {
    const offset = this.camera.position.clone().sub(this.controls.target);
    const level = new Quaternion().setFromUnitVectors(this.camera.up, new Vector3(0, 1, 0));
    const spherical = new Spherical().setFromVector3(offset.applyQuaternion(level));
    spherical.theta += azimuth;
    spherical.phi -= elevation;
    spherical.radius *= scale;
    offset.setFromSpherical(spherical.makeSafe()).applyQuaternion(level.invert());
    this.camera.position.copy(offset.add(this.controls.target));
    this.controls.update();
    this.redraw();
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.stage;
    if (!width || !height) return;
    this.renderer.setSize(width, height, false);
    this.camera.aspect = width / this.panes.length / height;
    this.camera.updateProjectionMatrix();
    this.draw(); // at once: a new size clears the canvas
  }

  redraw() {
    this.pending ||= requestAnimationFrame((now) => this.draw(now));
  }

  draw(now) {
    if (now !== undefined) this.pending = 0;
    if (now !== undefined && this.playing) {
      const passed = Math.min((now - (this.last ?? now)) / 1000, 0.1); // a tab that slept does not jump
      this.last = now;
      this.show(this.time + passed * this.speed);
      if (this.time >= this.duration) {
        if (this.find("loop").checked) this.show(0); else this.play(false);
      }
    }
    this.controls.update();
    const { clientWidth: width, clientHeight: height } = this.stage, part = width / this.panes.length;
    this.renderer.setScissorTest(this.panes.length > 1);
    this.panes.forEach((pane, i) => {
      this.renderer.setViewport(i * part, 0, part, height);
      this.renderer.setScissor(i * part, 0, part, height);
      this.renderer.render(pane, this.camera);
    });
    for (const { label, pane, position } of this.labels) {
      const { x, y, z } = position.clone().project(this.camera);
      label.hidden = Math.abs(x) > 1 || Math.abs(y) > 1 || z > 1;
      label.style.transform = `translate(${(pane + (x + 1) / 2) * part}px, ${(1 - y) / 2 * height}px)`;
    }
  }

  // ---- hands

  listen() {
    const { figure, stage } = this;
    this.find("play").addEventListener("click", () => this.play());
    this.find("reset").addEventListener("click", () => this.reset());
    this.find("speed").addEventListener("change", (event) => { this.speed = Number(event.target.value); });
    this.find("time").addEventListener("input", (event) => this.jump(Number(event.target.value)));
    figure.querySelectorAll("[data-track]").forEach((box) => box.addEventListener("change", () => {
      this.moving[Number(box.dataset.track)].group.visible = box.checked;
      this.redraw();
    }));
    stage.addEventListener("focus", () => { this.controls.enableZoom = true; });
    stage.addEventListener("blur", () => { this.controls.enableZoom = false; });
    figure.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.resize()).observe(stage);
    dark.addEventListener("change", () => this.repaint());
    if (!calm.matches) {
      const seen = new IntersectionObserver(([entry]) => {
        if (!entry.isIntersecting) return;
        seen.disconnect();
        if (this.time === 0) this.play(true);
      }, { threshold: 0.5 });
      seen.observe(stage);
    }
  }

  key(event) {
    const slider = event.target === this.find("time");
    if (event.target !== this.stage && !slider) return; // buttons have keys of their own
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const actions = {
      " ": () => this.play(),
      "+": () => this.turn(0, 0, 0.9), "-": () => this.turn(0, 0, 1 / 0.9), "0": () => this.reset(),
    };
    if (event.shiftKey) Object.assign(actions, {
      ArrowLeft: () => this.turn(-0.1, 0), ArrowRight: () => this.turn(0.1, 0),
      ArrowUp: () => this.turn(0, 0.1), ArrowDown: () => this.turn(0, -0.1),
    });
    else if (!slider) Object.assign(actions, {
      ArrowLeft: () => this.step(-1), ArrowRight: () => this.step(1),
      PageUp: () => this.step(10), PageDown: () => this.step(-10),
      Home: () => this.jump(0), End: () => this.jump(this.duration),
    });
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }
}

// ---- start ----------------------------------------------------------------------------------------

function start(figure) {
  const probe = document.createElement("canvas").getContext("webgl2");
  if (!probe) {
    figure.classList.add("without");
    figure.querySelector("[data-part=notice]").textContent =
      "This browser has no WebGL 2, so the 3-D animation cannot be shown; its description is below.";
    figure.querySelector("details").open = true;
    return;
  }
  probe.getExtension("WEBGL_lose_context")?.loseContext();
  figure.animation = new Player(figure);
  figure.classList.add("ready");
}

document.querySelectorAll("figure.animation").forEach(start);
