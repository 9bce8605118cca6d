// Runs before the first paint, so that a chosen theme does not flash; the button is in app.js.
"use strict";
try {
  const theme = localStorage.getItem("fathom.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // No storage: the system's theme.
}
