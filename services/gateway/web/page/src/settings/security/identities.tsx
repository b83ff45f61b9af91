/** Identities at identity providers with which one signs in: linked and unlinked here. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { answered, api } from "../../api/client.ts";
import { queryClient } from "../../api/queries.ts";
import { ConfirmButton } from "../../forms/confirm.tsx";
import { useSaving } from "../../forms/form.tsx";
import { Loaded } from "../../forms/loaded.tsx";
import { Table } from "../../forms/table.tsx";
import { Button } from "../../ui/button.tsx";
import { ago } from "../../ui/format.ts";
import { Visible } from "../../ui/visible.tsx";

const identities = queryOptions({
  queryKey: ["me", "linked-identities"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/me/linked-identities", { signal })),
});
const configuration = queryOptions({
  queryKey: ["configuration"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/configuration", { signal })),
});

export function Identities() {
  const issuers = useQuery(configuration).data?.issuers ?? [];
  const saving = useSaving();
  const nameOf = (name: string): string => issuers.find((each) => each.name === name)?.display_name ?? name;

  async function link(issuer: string): Promise<void> {
    const { path } = await answered(api.POST("/api/v1/me/linked-identities", { body: { issuer } }));
    location.assign(path);
  }

  return (
    <div className="section-part">
      <h3 className="section-part-title">Identity providers</h3>
      <Loaded query={useQuery(identities)} what="list of identities">
        {(data) => (
          <Table
            label="Linked identities"
            rows={data.items}
            keyOf={(row) => row.id}
            empty={{
              title: "No identity is linked",
              text: issuers.length ? "Link one to sign in with it." : "Administrators add identity providers.",
            }}
            columns={[
              {
                title: "Provider",
                cell: (row) => (
                  <>
                    <span className="cell-main">{nameOf(row.issuer)}</span>
                    <span className="cell-side"><Visible>{row.subject}</Visible></span>
                  </>
                ),
              },
              { title: "Linked", cell: (row) => ago(row.linked_at, Date.now()) },
              {
                title: "",
                cell: (row) => (
                  <ConfirmButton
                    label="Unlink"
                    title={`Unlink ${nameOf(row.issuer)}?`}
                    text="Its sign-in no longer leads to your account. Sessions stay."
                    onConfirm={async () => {
                      const params = { path: { linked_identity_id: row.id } };
                      await answered(api.DELETE("/api/v1/me/linked-identities/{linked_identity_id}", { params }));
                      await queryClient.invalidateQueries({ queryKey: identities.queryKey });
                    }}
                  />
                ),
              },
            ]}
          />
        )}
      </Loaded>
      {saving.problem && <p className="field-problem" role="alert">{saving.problem}</p>}
      <div className="table-actions">
        {issuers.map((each) => (
          <Button key={each.name} small disabled={saving.isBusy} onClick={() => void saving.save(() => link(each.name))}>
            Link {each.display_name}
          </Button>
        ))}
      </div>
    </div>
  );
}
