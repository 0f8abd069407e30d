/** Prints the result of a command: as JSON, or as text for people. */
export function printResult(isJson: boolean, json: () => unknown, text: () => string): void {
  console.log(isJson ? JSON.stringify(json(), null, 2) : text());
}
