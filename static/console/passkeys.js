// Security keys and passkeys. A form with data-passkey="ask" or "make" first asks the browser's authenticator, puts
// what it answers into its field `credential`, and is then sent. What to ask stands in the JSON element that
// data-passkey-options names, or is fetched from data-passkey-url. A hidden form appears where passkeys are there.

const here = typeof PublicKeyCredential === "function" && "parseRequestOptionsFromJSON" in PublicKeyCredential;

/** @param {HTMLFormElement} form @returns {Promise<any>} */
async function optionsOf(form) {
  const url = form.dataset.passkeyUrl;
  if (!url) return JSON.parse(document.getElementById(form.dataset.passkeyOptions ?? "")?.textContent ?? "{}");
  const answer = await fetch(url, { headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error(String(answer.status));
  return answer.json();
}

/** @param {HTMLFormElement} form @returns {Promise<Credential | null>} */
async function credentialFor(form) {
  const options = await optionsOf(form);
  if (form.dataset.passkey === "ask") {
    const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options.request_options.publicKey);
    return navigator.credentials.get({ publicKey });
  }
  const wanted = options.creation_options.publicKey;
  const alone = form.elements.namedItem("passwordless");
  const passkey = alone instanceof HTMLInputElement && alone.checked;
  wanted.authenticatorSelection = {
    ...wanted.authenticatorSelection,
    residentKey: passkey ? "required" : "discouraged",
    requireResidentKey: passkey,
    ...(passkey ? { userVerification: "required" } : {}),
  };
  return navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(wanted) });
}

/** @param {HTMLFormElement} form @param {SubmitEvent} event */
async function ask(form, event) {
  const field = form.elements.namedItem("credential");
  if (!(field instanceof HTMLInputElement)) return;
  event.preventDefault();
  const fault = form.querySelector("[data-passkey-fault]");
  fault?.setAttribute("hidden", "");
  try {
    const credential = await credentialFor(form);
    if (!(credential instanceof PublicKeyCredential)) throw new Error("nothing");
    field.value = JSON.stringify(credential.toJSON());
    form.submit();
  } catch {
    fault?.removeAttribute("hidden");
  }
}

for (const form of document.querySelectorAll("form[data-passkey]")) {
  if (!(form instanceof HTMLFormElement)) continue;
  if (here) form.hidden = false;
  form.addEventListener("submit", (event) => ask(form, event));
}
