// A button on each block of code; of a console, what stands behind prompts is copied.
document.addEventListener("DOMContentLoaded", () => {
  if (!navigator.clipboard) return; // of pages that are not served from a safe place
  for (const block of document.querySelectorAll("div.highlight")) {
    const code = block.querySelector("pre");
    if (!code) continue;
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
});
