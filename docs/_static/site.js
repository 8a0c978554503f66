// Buttons that copy code, and members of classes folded. Without scripts pages are whole.

// Of a console, what stands behind prompts is copied.
function addButton(block) {
  const code = block.querySelector("pre");
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "copy";
  button.setAttribute("aria-label", "copy this code");
  button.addEventListener("click", async () => {
    const commands = code.textContent.split("\n").filter((line) => line.startsWith("$ "));
    const text = commands.length
      ? commands.map((line) => line.slice(2)).join("\n")
      : code.textContent.trimEnd();
    await navigator.clipboard.writeText(text);
    button.textContent = "copied";
    setTimeout(() => (button.textContent = "copy"), 1500);
  });
  block.classList.add("copied");
  block.append(button);
}

function foldMembers(body) {
  const members = [...body.querySelectorAll(":scope > dl.py")];
  if (members.length < 2) return;
  const details = document.createElement("details");
  const summary = document.createElement("summary");
  summary.textContent = `${members.length} attributes and methods`;
  members[0].before(details);
  details.append(summary, ...members);
}

// A link to something that is folded opens it.
function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const details = target?.closest("details");
  if (!details || details.open) return;
  details.open = true;
  target.scrollIntoView();
}

document.addEventListener("DOMContentLoaded", () => {
  // There is no clipboard on pages that are not served from a safe place.
  if (navigator.clipboard) document.querySelectorAll("div.highlight:has(pre)").forEach(addButton);
  document.querySelectorAll("dl.py.class > dd").forEach(foldMembers);
  openTarget();
});
window.addEventListener("hashchange", openTarget);
